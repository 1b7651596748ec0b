"""A fair model with Accelerate: accelerate launch examples/accelerate_ddp.py, or torchrun
--nproc-per-node 2 ...ddp.py

Accelerate prepares the model and the optimizer. The loader stays as it is: its sampler knows the
processes already, and would be dealt out twice.
"""

import torch
from accelerate import Accelerator
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.utils.data import DataLoader, TensorDataset

from metrifair.nn import StratifiedBatchSampler, UnfairnessPenalty, global_mean

accelerator = Accelerator()
torch.manual_seed(0)
groups = torch.arange(4_000) % 2
X = torch.randn(4_000, 5) + 0.5 * groups[:, None]
y = (X.sum(1) + torch.randn(4_000) > 1.5).float()
rank, world_size = accelerator.process_index, accelerator.num_processes

sampler = StratifiedBatchSampler(
    groups, batch_size=250, rank=rank, world_size=world_size, random_state=0
)
loader = DataLoader(TensorDataset(X, y, groups, sampler.weights), batch_sampler=sampler)
penalty = UnfairnessPenalty(sampler=sampler)
network = torch.nn.Sequential(torch.nn.Linear(5, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
model, optimizer = accelerator.prepare(network, torch.optim.Adam(network.parameters(), lr=0.01))
for _ in range(15):
    for batch in loader:
        features, labels, members, weights = (part.to(accelerator.device) for part in batch)
        output = model(features).squeeze(1)
        losses = weights * binary_cross_entropy_with_logits(output, labels, reduction="none")
        loss = global_mean(losses) + 3.0 * penalty(output.sigmoid(), members)
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()

if accelerator.is_main_process:
    score = accelerator.unwrap_model(model)(X.to(accelerator.device)).squeeze(1).sigmoid().detach()
    left = UnfairnessPenalty(estimate="batch", across=None, random_state=0)(score, groups).item()
    print(f"{world_size} process(es): energy distance {left:.6f}")
accelerator.end_training()
