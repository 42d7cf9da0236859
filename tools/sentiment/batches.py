"""What the training of both models needs: which texts are a step, their tensors, and the learning rate."""

import torch


def pad(ids):
    """(input_ids, attention_mask), both (B, L) with L the longest; [PAD] is 0."""
    length = max(len(row) for row in ids)
    padded = torch.tensor([row + [0] * (length - len(row)) for row in ids])
    return padded, (torch.arange(length) < torch.tensor([[len(row)] for row in ids])).long()


def plan(lengths, epochs, size, seed):
    """The rows of every batch of every epoch. Sorted by length within sixteen batches: little padding, and still mixed."""
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
    """Learning rates that rise over the first tenth of the steps and fall to 0 at the last."""
    share = lambda step: min((step + 1) / (0.1 * steps), (steps - step) / (0.9 * steps), 1.0)  # noqa: E731
    return torch.optim.lr_scheduler.LambdaLR(optimizer, share)
