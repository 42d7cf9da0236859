# Each target sets up its tools first and then calls CMake presets and scripts in tools/. tools/setup leaves stamps in
# .setup/, so a second run takes no time.

JOBS ?= $(shell nproc 2>/dev/null || sysctl -n hw.ncpu 2>/dev/null || echo 2)
bin := node_modules/.bin
BENCHMARKS ?= OFF

MAKEFLAGS += --no-print-directory

# Inputs of a build: it is skipped if all of them are older than its stamp.
files = $(shell find $(1) \( -name node_modules -o -name dist \) -prune -o -type f -print 2>/dev/null)
cxx_files := $(call files,src cmake CMakeLists.txt CMakePresets.json)
lib_files := $(call files,web/lib) package-lock.json
page_files := $(call files,web/page testdata/models)

.PHONY: help demo test cluster coverage mutants package docs matrix wheel release version deb page page-figures wasm wasm-release bench format clean
.NOTPARALLEL:

help:
	@echo 'make demo      build, print a real attention map, serve the page (PORT=8080; SERVE=0 stops after the map)'
	@echo 'make wasm      web/lib/dist for developing: WebAssembly without threads and link-time optimization, and the scripts'
	@echo 'make page      build/page, the page as static files (with 24 MB of all-MiniLM-L6-v2 as int8; MODELS=0: without; URL: its public address)'
	@echo 'make page-figures  cost of the page in Chromium: layout shifts, milliseconds per pointer move and key, memory, time to the first map'
	@echo 'make test      every kind of test once: natively, in Node, in Chromium (ALL=1: everything, in three browsers; ONLY=text: steps or tests whose names contain it; AFFECTED=1: also the steps that the change since .ci/base can affect)'
	@echo 'make coverage  lines that no test reaches, natively and in Node'
	@echo 'make mutants   planted bugs that no test of the page and the package finds (FILES=state/compare_texts.ts: only in some files); takes hours'
	@echo 'make package   build/attn.tgz, the npm package'
	@echo 'make docs      build/docs, the documentation as a site, and the page with a copy of it in build/page/docs'
	@echo 'make release   VERSION=1.2.3: the files of a release, in build/release-1.2.3, and the findings that prevent it (DRY=0: the tag; RELEASING.md)'
	@echo 'make deb       build/deb, packages for Debian'
	@echo 'make matrix    tests the package in bundlers, servers and other runtimes, which it installs (ROWS=text: only some)'
	@echo 'make wheel     build/attn-*.whl, the Python package for this machine'
	@echo 'make cluster   runs the programs of examples/cluster on local clusters of Ray and Spark, which it installs (TEXTS=10000; PEER=1: also sentence-transformers)'
	@echo 'make bench     compares attn with its peers, in WebAssembly and natively (benchmarks/README.md: HOSTS, CASES, QUICK=1, FULL=1)'
	@echo 'make format    format the sources'
	@echo 'make clean     remove build results (installed tools stay in .setup/ and node_modules/)'
	@echo
	@echo 'The native library alone: cmake -S . -B build/release && cmake --build build/release && cmake --install build/release'
	@echo 'Developing: cmake --preset NAME && cmake --build --preset NAME, names with cmake --list-presets'

demo:
	@tools/step 1/5 'set-up' tools/setup wasm node
	@$(MAKE) build/wasm/package.stamp STEPS=5
	@tools/step 4/5 'page' $(MAKE) build/page.demo
	@tools/step 5/5 'a real attention map' true
	@node tools/demo.mjs

test:
	@node tools/test.mjs $(if $(filter-out 0,$(ALL)),--all) $(if $(filter-out 0,$(AFFECTED)),--affected) $(if $(ONLY),--only '$(ONLY)') || { command -v node >/dev/null || { tools/setup node; echo '0 passed, 1 failed'; }; exit 1; }

coverage:
	@tools/setup native wasm node models fuzz
	@$(MAKE) wasm-release
	@node tools/coverage.mjs

mutants: wasm
	@cd tools/mutants && npm ci
	@node tools/mutants/run.mjs $(FILES)

wasm:
	@tools/setup wasm node
	@$(MAKE) build/wasm/package.stamp

STEPS ?= 3
build/wasm/attn.mjs: $(cxx_files)
	@mkdir -p build && cmake --preset wasm >build/wasm.log 2>&1 || { cat build/wasm.log; exit 1; }
	@tools/step 2/$(STEPS) 'WebAssembly' cmake --build --preset wasm --parallel $(JOBS)
	@touch $@
build/wasm/package.stamp: build/wasm/attn.mjs $(lib_files)
	@rm -f build/wasm-release/package.stamp
	@tools/step 3/$(STEPS) 'package' node web/lib/build.mjs
	@touch $@

wasm-release:
	@tools/setup wasm node
	@$(MAKE) build/wasm-release/package.stamp
build/wasm-release/attn.mjs: $(cxx_files)
	@mkdir -p build && cmake --preset wasm-release -DATTN_BUILD_BENCHMARKS=$(BENCHMARKS) >build/wasm-release.log 2>&1 || { cat build/wasm-release.log; exit 1; }
	@tools/step 2/3 'WebAssembly as released' cmake --build --preset wasm-release --parallel $(JOBS)
	@touch $@
build/wasm-release/package.stamp: build/wasm-release/attn.mjs $(lib_files)
	@rm -f build/wasm/package.stamp
	@tools/step 3/3 'package' node web/lib/build.mjs --wasm build/wasm-release
	@touch $@

package: wasm-release
	@node tools/package.mjs

# Passes CMake's default compiler name, by which ccache distinguishes compilers.
wheel:
	@tools/setup native python
	@tools/setup node || echo 'wheel: without Node attn.show() has a table instead of a map'
	@mkdir -p build && CXX="$${CXX:-c++}" $(or $(PYTHON),.setup/python-venv/bin/python) -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps \
	  --wheel-dir build $(WHEEL_OPTIONS) .
	@ls build/attn-*.whl

# Runs examples/cluster on local clusters of Ray and Spark, which it installs (about 1 GB). TEXTS: number of texts.
# PEER=1: also sentence-transformers on Ray, with PyTorch, another GB.
cluster_pip := build/cluster-venv/bin/python -m pip --quiet --disable-pip-version-check
cluster: wheel
	@tools/setup models
	@python3 -m venv build/cluster-venv
	@$(cluster_pip) install --require-hashes --only-binary=:all: --no-deps --requirement examples/cluster/requirements.txt
	@$(cluster_pip) install --require-hashes --no-binary=:all: --no-deps --no-build-isolation --requirement examples/cluster/spark.txt
	@$(cluster_pip) install --no-index --no-deps --force-reinstall build/attn-*.whl
	@$(if $(filter-out 0,$(PEER)),testdata/make/goldens/install.sh build/cluster-venv/bin/python testdata/make/goldens/requirements.txt)
	@build/cluster-venv/bin/python examples/cluster/check.py --texts $(or $(TEXTS),10000) $(if $(filter-out 0,$(PEER)),--peer)

# Tests the packed package in common tools, which it installs. ROWS=text selects rows by name.
matrix: package
	@node --test --test-reporter=spec $(if $(ROWS),'--test-name-pattern=/$(ROWS)|the table of bundlers/i') tests/bundlers/bundlers.test.mjs

# The page links to the documentation and includes it (DOCS=0: without).
docs: wasm-release wheel
	@tools/setup docs
	@node docs/tools/site.mjs
	@$(MAKE) page

# A dry run, which changes only build/. DRY=0 creates the tag if all checks pass; nothing is pushed or published.
# MATRIX=1 also runs the package in other tools, ONLY=npm,source,... builds a part, REPOSITORY=URL is the source
# address in the packages, PYTHONS=python3.12,... are further interpreters for wheels: the one of 3.12 serves all
# later versions.
release:
	@tools/setup native wasm node release
	@node tools/release.mjs '$(VERSION)' $(if $(filter 0,$(DRY)),--tag) $(if $(filter-out 0,$(MATRIX)),--matrix) \
	  $(if $(ONLY),--only '$(ONLY)') $(if $(REPOSITORY),--repository '$(REPOSITORY)') $(if $(PYTHONS),--pythons '$(PYTHONS)')

# Sets VERSION=1.2.3 everywhere, and today as its date in the changelog.
version:
	@tools/setup node
	@node tools/release.mjs '$(VERSION)' --prepare

deb:
	@tools/setup native node release
	@node tools/deb.mjs

copy_int8 := [ ! -d models/all-MiniLM-L6-v2-int8 ] || { mkdir -p build/page/models && cp -R models/all-MiniLM-L6-v2-int8 build/page/models/; }
# Contains the int8 files of all-MiniLM-L6-v2. MODELS=0 omits them; if they are unavailable, the page loads them from
# the Hub, unless MODELS=1 requires them. URL: public address, for link previews.
page: wasm-release
	@rm -f build/page.demo
	@node tools/package.mjs --unweighed
	@$(if $(filter 0,$(MODELS)),:,tools/setup models $(if $(MODELS),,|| echo 'page: without all-MiniLM-L6-v2; its button will ask huggingface.co'))
	@node tools/converted_models.mjs
	@MODELS=$(MODELS) DOCS=$(DOCS) ATTN_PAGE_URL='$(URL)' $(bin)/vite build --logLevel warn web/page
	@$(if $(filter 0,$(MODELS)),:,$(copy_int8))

build/page.demo: build/wasm/package.stamp $(page_files)
	@DOCS=0 $(bin)/vite build --logLevel warn web/page
	@$(copy_int8)
	@touch $@

page-figures:
	@tools/setup browsers models
	@$(MAKE) page MODELS=1
	@node tools/page/figures.mjs

bench:
	@tools/setup bench wasm node browsers
	@rm -f build/wasm-release/attn.mjs
	@$(MAKE) wasm-release BENCHMARKS=ON
	@case ",$(HOSTS)," in ,,|*,native,*) cmake -S . -B build/bench-native -DATTN_BUILD_BENCHMARKS=ON >/dev/null && \
	  cmake --build build/bench-native --parallel $(JOBS) --target attn_benchmarks;; esac
	@.setup/bench-venv/bin/python benchmarks/peers/make_models.py
	@.setup/bench-venv/bin/python benchmarks/peers/make_families.py
	@node tools/converted_models.mjs int8 float16
	@node benchmarks/run.mjs

format:
	@tools/setup format node
	@$$(command -v clang-format-19 || command -v clang-format) -i $$(git ls-files '*.cpp' '*.hpp')
	@$(bin)/prettier --log-level warn --write $$(git ls-files '*.ts' '*.tsx' '*.mjs' '*.css' '*.html' '*.json' ':!*package-lock.json' ':!testdata/*.json')

clean:
	@rm -rf build web/lib/dist web/lib/LICENSE
