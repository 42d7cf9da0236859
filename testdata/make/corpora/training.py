"""Code that the trainings of the small models share: batches, tensors, the training loop and writing the files."""

import copy

import torch
from tokenizers import Tokenizer

WEIGHT_DECAY = 0.01
KEEP = 0.998  # per step, of the running mean of the weights


def reproducible():
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # slow, and all memory is written before it is read
    torch.set_num_threads(1)  # sums depend on the number of threads


def pad(ids):
    """(input_ids, attention_mask), both (B, L) with L the longest; [PAD] is 0."""
    length = max(len(row) for row in ids)
    padded = torch.tensor([row + [0] * (length - len(row)) for row in ids])
    return padded, (torch.arange(length) < torch.tensor([[len(row)] for row in ids])).long()


def plan(lengths, epochs, size, seed):
    """Rows of each batch of all epochs. Each pool of 16 batches is sorted by length: little padding, but still shuffled."""
    generator = torch.Generator().manual_seed(seed)
    steps = []
    for _ in range(epochs):
        order = torch.randperm(len(lengths), generator=generator).tolist()
        epoch = []
        for start in range(0, len(order), 16 * size):
            pool = sorted(order[start : start + 16 * size], key=lambda row: lengths[row])
            epoch += [pool[at : at + size] for at in range(0, len(pool), size)]
        steps += [epoch[at] for at in torch.randperm(len(epoch), generator=generator).tolist()]
    return steps


def rise_and_fall(optimizer, steps):
    """A learning rate that rises over the first tenth of the steps and falls to 0 at the last."""
    share = lambda step: min((step + 1) / (0.1 * steps), (steps - step) / (0.9 * steps), 1.0)  # noqa: E731
    return torch.optim.lr_scheduler.LambdaLR(optimizer, share)


def fit(model, steps, learning_rate, loss_of, every=250, fused=False):
    """Runs AdamW on loss_of(step) and returns the running mean of the weights. Prints the loss every `every` steps."""
    mean = copy.deepcopy(model).eval()
    parameters, averaged = list(model.parameters()), list(mean.parameters())
    groups = [
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": WEIGHT_DECAY},
        {"params": [p for p in parameters if p.dim() == 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=learning_rate, betas=(0.9, 0.98), fused=fused)
    schedule = rise_and_fall(optimizer, steps)
    model.train()
    for step in range(steps):
        loss = loss_of(step)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
        # At first the mean follows the newest weights, so that the random initial ones have no effect.
        keep = min(KEEP, (step + 1) / (step + 10))
        with torch.no_grad():
            torch._foreach_lerp_(averaged, parameters, 1 - keep)
        if step % every == 0:
            print(f"step {step} of {steps}, loss {loss.item():.3f}", flush=True)
    return mean


def save(model, tokenizer, folder):
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "model.safetensors").chmod(0o644)
    # Compact, like many published tokenizers: 70 kB less.
    path = str(folder / "tokenizer.json")
    Tokenizer.from_file(path).save(path, pretty=False)
