"""
A penalty in your own PyTorch loop
==================================

Add one term to the loss, and use batches that hold every group. The penalty is an unbiased estimate
in every batch, so the rest of the loop stays the same.
"""

import matplotlib.pyplot as plt
import torch

from metrifair.metrics import energy_distance
from metrifair.nn import StratifiedBatchSampler, UnfairnessPenalty

torch.manual_seed(0)
group = torch.randint(2, (3000,))
x = torch.randn(3000, 4) + group[:, None] * torch.tensor([0.8, 0.4, 0.0, 0.0])
target = (x.sum(1) + torch.randn(3000) > 0.6).float()

figure, axes = plt.subplots()
for strength in (0, 1, 5):
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1), torch.nn.Flatten(0)
    )
    sampler = StratifiedBatchSampler(group, target, batch_size=128, random_state=0)
    penalty = UnfairnessPenalty(sampler=sampler)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    distances = []
    for _ in range(12):
        for rows in sampler:
            output = net(x[rows])
            loss = torch.nn.functional.binary_cross_entropy_with_logits(
                output, target[rows], sampler.weights[rows]
            )
            loss = loss + strength * penalty(output.sigmoid(), group[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            score = net(x).sigmoid()
            distances.append(energy_distance(score[group == 0], score[group == 1]).item())
    right = ((score > 0.5) == target.bool()).float().mean()
    axes.plot(
        range(1, 13), distances, marker="o", label=f"strength {strength:g}: accuracy {right:.2f}"
    )
axes.set(
    xlabel="epoch",
    ylabel="energy distance of the groups",
    title="One more term in the loss",
    ylim=(0, None),
)
axes.legend()
