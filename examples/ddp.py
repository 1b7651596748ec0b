"""A fair model trained by several processes: torchrun --nproc-per-node 2 examples/ddp.py

Each process computes its own rows of every batch. The penalty is that of the whole batch: one
process alone ends at the same model (python examples/ddp.py), but for rounding.
"""

import os

import torch
from torch import distributed
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.nn.parallel import DistributedDataParallel

from metrifair.nn import StratifiedBatchSampler, UnfairnessPenalty, global_mean

if "RANK" in os.environ:  # torchrun says who this is
    distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
there = distributed.is_initialized()
rank, world_size = (distributed.get_rank(), distributed.get_world_size()) if there else (0, 1)
device = (
    torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    if torch.cuda.is_available()
    else "cpu"
)

torch.manual_seed(0)  # the same data and the same model everywhere
groups = torch.arange(4_000) % 2
X = torch.randn(4_000, 5) + 0.5 * groups[:, None]
y = (X.sum(1) + torch.randn(4_000) > 1.5).float()
X, y, groups = X.to(device), y.to(device), groups.to(device)
model: torch.nn.Module = torch.nn.Sequential(
    torch.nn.Linear(5, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)
).to(device)

sampler = StratifiedBatchSampler(
    groups.cpu(), batch_size=250, rank=rank, world_size=world_size, random_state=0
)
penalty = UnfairnessPenalty(sampler=sampler)  # across="auto": over all processes
trained = DistributedDataParallel(model) if there else model
optimizer = torch.optim.Adam(trained.parameters(), lr=0.01)
weights = sampler.weights.to(device)
for epoch in range(15):
    sampler.set_epoch(epoch)
    for rows in sampler:
        output = trained(X[rows]).squeeze(1)
        losses = weights[rows] * binary_cross_entropy_with_logits(output, y[rows], reduction="none")
        loss = global_mean(losses) + 3.0 * penalty(output.sigmoid(), groups[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

if rank == 0:  # one process judges, alone
    score = model(X).squeeze(1).sigmoid().detach()
    left = UnfairnessPenalty(estimate="batch", across=None, random_state=0)(score, groups).item()
    right = ((score > 0.5) == y).double().mean().item()
    print(f"{world_size} process(es): energy distance {left:.6f}, accuracy {right:.3f}")
if there:
    distributed.destroy_process_group()
