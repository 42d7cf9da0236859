"""The teacher of the small model: all-MiniLM-L6-v2, fine-tuned on ratings by people, which then rates how positive any text is."""

import torch
from torch.nn import functional as F
from transformers import AutoModel, AutoTokenizer

from training import pad, plan, rise_and_fall

EPOCHS = 2
BATCH = 32
LEARNING_RATE = 1e-4
HEAD_LEARNING_RATE = 1e-3
WEIGHT_DECAY = 0.01
LENGTH = 64


class Teacher(torch.nn.Module):
    def __init__(self, minilm, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.seed = seed
        self.tokenizer = AutoTokenizer.from_pretrained(minilm)
        self.encoder = AutoModel.from_pretrained(minilm, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
        self.encoder.embeddings.requires_grad_(False)  # most rows belong to rare words
        self.head = torch.nn.Linear(self.encoder.config.hidden_size, 1)

    def encode(self, texts):
        return self.tokenizer(texts, truncation=True, max_length=LENGTH)["input_ids"]

    def forward(self, input_ids, attention_mask):
        """The logits of "positive", of the mean over the tokens, for which this encoder was made: (B)."""
        states = self.encoder(input_ids, attention_mask=attention_mask).last_hidden_state
        weights = attention_mask.unsqueeze(-1).float()
        mean = (states * weights).sum(1) / weights.sum(1)
        return self.head(F.dropout(mean, 0.1, self.training)).squeeze(-1)

    def fit(self, texts, targets):
        """Learns probabilities of "positive"."""
        ids = self.encode(texts)
        encoder = [p for p in self.encoder.parameters() if p.requires_grad]
        groups = [{"params": encoder, "lr": LEARNING_RATE}, {"params": list(self.head.parameters()), "lr": HEAD_LEARNING_RATE}]
        optimizer = torch.optim.AdamW(groups, weight_decay=WEIGHT_DECAY)
        steps = plan([len(row) for row in ids], EPOCHS, BATCH, self.seed)
        schedule = rise_and_fall(optimizer, len(steps))
        self.train()
        for step, rows in enumerate(steps):
            with torch.autocast("cpu", torch.bfloat16):  # saves two thirds of the time of products
                logits = self(*pad([ids[row] for row in rows]))
            loss = F.binary_cross_entropy_with_logits(logits.float(), targets[rows])
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            if step % 100 == 0:
                print(f"teacher: step {step} of {len(steps)}, loss {loss.item():.3f}", flush=True)
        return self

    @torch.inference_mode()
    def logits(self, texts):
        """(N), of texts of equal length together."""
        self.eval()
        ids = self.encode(texts)
        order = sorted(range(len(ids)), key=lambda row: len(ids[row]))
        result = torch.empty(len(ids))
        for start in range(0, len(order), 64):
            rows = order[start : start + 64]
            with torch.autocast("cpu", torch.bfloat16):
                result[rows] = self(*pad([ids[row] for row in rows])).float()
        return result
