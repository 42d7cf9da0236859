"""activations.py MODEL OUT: TransformerLens' activations, logit lens, attributions and patches of a model, in float64.

MODEL is the folder of a GPT-2, or a .gguf file of a Llama model. OUT is a safetensors file.
"""

import sys
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file
from transformer_lens import HookedTransformer, HookedTransformerConfig, patching
from transformer_lens.pretrained.weight_conversions.gpt2 import convert_gpt2_weights
from transformer_lens.pretrained.weight_conversions.llama import convert_llama_weights

HOOKS = (
    *("hook_resid_pre", "hook_resid_mid", "hook_resid_post", "hook_attn_out", "hook_mlp_out", "mlp.hook_post"),
    *(f"attn.hook_{name}" for name in ("q", "k", "v", "rot_q", "rot_k", "attn_scores", "pattern", "z")),
)
SITES = {"residual": "hook_resid_pre", "attention": "hook_attn_out", "mlp": "hook_mlp_out", "head": "attn.hook_z"}
TOP = 5


def gpt2(folder):
    model = transformers.GPT2LMHeadModel.from_pretrained(folder).double()
    of = model.config
    config = HookedTransformerConfig(
        n_layers=of.n_layer,
        d_model=of.n_embd,
        d_head=of.n_embd // of.n_head,
        n_heads=of.n_head,
        n_ctx=of.n_positions,
        d_vocab=of.vocab_size,
        d_mlp=4 * of.n_embd,
        act_fn="gelu_new",
        eps=of.layer_norm_epsilon,
        normalization_type="LN",
        dtype=torch.float64,
        device="cpu",
    )
    # Two texts that differ in one token, and the tokens whose logits are compared.
    return model, config, convert_gpt2_weights(model, config), [20, 131, 7, 300, 55, 8, 9], [20, 131, 90, 300, 55, 8, 9], 30, 31


def llama(file):
    given = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
    model = transformers.AutoModelForCausalLM.from_pretrained(**given).double()
    tokenizer = transformers.AutoTokenizer.from_pretrained(**given)
    of = model.config
    head = of.hidden_size // of.num_attention_heads
    config = HookedTransformerConfig(
        n_layers=of.num_hidden_layers,
        d_model=of.hidden_size,
        d_head=head,
        n_heads=of.num_attention_heads,
        n_key_value_heads=of.num_key_value_heads,
        n_ctx=512,
        d_vocab=of.vocab_size,
        d_mlp=of.intermediate_size,
        act_fn="silu",
        eps=of.rms_norm_eps,
        normalization_type="RMS",
        final_rms=True,
        gated_mlp=True,
        positional_embedding_type="rotary",
        rotary_adjacent_pairs=False,
        rotary_dim=head,
        rotary_base=int(of.rope_parameters["rope_theta"]),
        dtype=torch.float64,
        device="cpu",
    )
    # Indirect object identification (Wang et al. 2022).
    texts = [tokenizer.encode(f"When Mary and John went to the store, {name} gave a drink to") for name in ("John", "Mary")]
    answers = [tokenizer.encode(f" {name}")[0] for name in ("Mary", "John")]
    return model, config, convert_llama_weights(model, config), *texts, *answers


def main():
    given, out = Path(sys.argv[1]), sys.argv[2]
    reference, config, weights, clean, corrupted, answer, contrast = llama(given) if given.is_file() else gpt2(given)
    model = HookedTransformer(config)
    model.load_state_dict({name: weight.double() for name, weight in weights.items()}, strict=False)
    layers = range(config.n_layers)
    difference = lambda logits: logits[0, -1, answer] - logits[0, -1, contrast]

    with torch.no_grad():
        logits, cache = model.run_with_cache(torch.tensor([clean]))
        # TransformerLens' rotary tables are float32.
        assert (logits - reference(torch.tensor([clean])).logits).abs().max() < 1e-4
        values = {"clean": torch.tensor(clean), "corrupted": torch.tensor(corrupted), "answers": torch.tensor([answer, contrast])}
        shown = layers if config.n_layers < 4 else (0, config.n_layers // 2, config.n_layers - 1)
        for name in (f"blocks.{layer}.{hook}" for layer in shown for hook in HOOKS):
            if name in cache:
                values[name] = cache[name].nan_to_num(neginf=0)  # scores after the causal mask

        inputs = cache.accumulated_resid(layer=-1, incl_mid=False)[:, 0, -1:]
        top = torch.stack([model.unembed(model.ln_final(each[None])) for each in inputs])[:, 0, 0].topk(TOP)
        values["lens.ids"], values["lens.logits"] = top.indices, top.values

        # With the final norm frozen: its scale is that of the whole residual stream.
        unembedding = model.W_U[:, answer] - model.W_U[:, contrast]
        last = cache[f"blocks.{layers[-1]}.hook_resid_post"][0, -1]
        centred = (lambda x: x - x.mean(-1, keepdim=True)) if config.normalization_type == "LN" else lambda x: x
        scale = (centred(last) ** 2).mean().add(config.eps).sqrt()
        parts = lambda x: (centred(x) / scale * model.ln_final.w) @ unembedding
        values["parts.heads"] = parts(cache.stack_head_results(layer=-1, pos_slice=-1)[:, 0]).view(config.n_layers, config.n_heads)
        values["parts.mlps"] = parts(torch.stack([cache[f"blocks.{layer}.hook_mlp_out"][0, -1] - model.blocks[layer].mlp.b_out for layer in layers]))
        embedding = cache["hook_embed"][0, -1]
        values["parts.embedding"] = parts(embedding + cache["hook_pos_embed"][0, -1] if "hook_pos_embed" in cache else embedding)

        of_clean, of_corrupted = difference(logits), difference(model(torch.tensor([corrupted])))
        share = lambda logits: (difference(logits) - of_corrupted) / (of_clean - of_corrupted)
        if config.n_layers < 4:  # one forward for each layer and position
            for site, patch in {
                "residual": patching.get_act_patch_resid_pre,
                "attention": patching.get_act_patch_attn_out,
                "mlp": patching.get_act_patch_mlp_out,
                "head": patching.get_act_patch_attn_head_out_all_pos,
            }.items():
                values[f"patched.{site}"] = patch(model, torch.tensor([corrupted]), cache, share)

    # Attribution patching: the difference of the activations times the gradient in the corrupted text.
    seen = {}

    def keep(value, hook):
        value.retain_grad()
        seen[hook.name] = value

    for hook in SITES.values():
        for layer in layers:
            model.add_hook(f"blocks.{layer}.{hook}", keep)
    difference(model(torch.tensor([corrupted]))).backward()
    for site, hook in SITES.items():
        rows = []
        for layer in layers:
            value = seen[f"blocks.{layer}.{hook}"]
            effect = ((cache[f"blocks.{layer}.{hook}"] - value.detach()) * value.grad).sum(-1)[0]
            rows.append(effect.sum(0) if site == "head" else effect)
        values[f"attributed.{site}"] = torch.stack(rows) / (of_clean - of_corrupted)
    save_file({name: value.detach().float().contiguous() for name, value in values.items()}, out)


main()
