// Says in a custom section of the binary which of the four it is, so that the loader can tell from bytes alone.
__asm__(".section .custom_section.attn,\"\",@\n.ascii \"" ATTN_WASM_VARIANT "\"\n");
