"""The rules of autocast, and what PyTorch's documentation says of each operation: data, without torch.

Source: PyTorch documentation, "Automatic Mixed Precision package - torch.amp", section "Autocast Op Reference"
(docs/source/amp.md at commit 4e0ff98 of pytorch/pytorch, 2026), https://docs.pytorch.org/docs/stable/amp.html.
Names are those of the lists, but for `_SPELLED`.
"""

from typing import NamedTuple

NARROW, WIDE, PROMOTE, FOLLOWS, ERROR = "narrow", "wide", "promote", "follows", "error"


class Rule(NamedTuple):
    """A rule in few words, and the reason why autocast has it."""

    label: str
    why: str


RULES = {
    NARROW: Rule(
        "casts down",
        "Products take nearly all the time, and hardware multiplies 16-bit inputs fastest, while it adds in float32.",
    ),
    WIDE: Rule(
        "casts to float32",
        "Powers and exponentials leave float16’s range, long sums and losses lose digits: float32 keeps both.",
    ),
    PROMOTE: Rule("widest of its inputs", "It takes several tensors: with one float32 among them, all become float32."),
    FOLLOWS: Rule("whatever comes in", "Autocast leaves it alone: it computes in the dtype of what it is given."),
    ERROR: Rule("refuses", "It raises: its gradient could leave float16’s range, and a safer operation exists."),
}

_CUDA = {
    "narrow": """
        __matmul__ addbmm addmm addmv addr baddbmm bmm multi_dot conv1d conv2d conv3d conv_transpose1d conv_transpose2d
        conv_transpose3d GRUCell linear LSTMCell matmul mm mv prelu RNNCell
    """,
    "wide": """
        __pow__ __rdiv__ __rpow__ __rtruediv__ acos asin binary_cross_entropy_with_logits cosh cosine_embedding_loss
        cdist cosine_similarity cross_entropy cumprod cumsum dist erfinv exp expm1 group_norm hinge_embedding_loss
        kl_div l1_loss layer_norm log log_softmax log10 log1p log2 margin_ranking_loss mse_loss multilabel_margin_loss
        multi_margin_loss nll_loss norm normalize pdist poisson_nll_loss pow prod reciprocal rsqrt sinh smooth_l1_loss
        soft_margin_loss softmax softmin softplus sum renorm tan triplet_margin_loss
    """,
    "promote": "addcdiv addcmul atan2 bilinear cross dot grid_sample index_put scatter_add tensordot",
    "error": "binary_cross_entropy",
}
_CPU = {
    "narrow": """
        conv1d conv2d conv3d bmm mm linalg_vecdot baddbmm addmm addbmm linear matmul _convolution conv_tbc
        mkldnn_rnn_layer conv_transpose1d conv_transpose2d conv_transpose3d prelu scaled_dot_product_attention
        _native_multi_head_attention
    """,
    "wide": """
        avg_pool3d binary_cross_entropy grid_sampler grid_sampler_2d _grid_sampler_2d_cpu_fallback grid_sampler_3d polar
        prod quantile nanquantile stft cdist trace view_as_complex cholesky_inverse cholesky_solve inverse lu_solve
        orgqr ormqr pinverse max_pool3d max_unpool2d max_unpool3d adaptive_avg_pool3d reflection_pad1d reflection_pad2d
        replication_pad1d replication_pad2d replication_pad3d mse_loss cosine_embedding_loss nll_loss nll_loss2d
        hinge_embedding_loss poisson_nll_loss cross_entropy_loss l1_loss huber_loss margin_ranking_loss soft_margin_loss
        triplet_margin_loss multi_margin_loss ctc_loss kl_div multilabel_margin_loss binary_cross_entropy_with_logits
        fft_fft fft_ifft fft_fft2 fft_ifft2 fft_fftn fft_ifftn fft_rfft fft_irfft fft_rfft2 fft_irfft2 fft_rfftn
        fft_irfftn fft_hfft fft_ihfft linalg_cond linalg_matrix_rank linalg_solve linalg_cholesky linalg_svdvals
        linalg_eigvals linalg_eigvalsh linalg_inv linalg_householder_product linalg_tensorinv linalg_tensorsolve
        fake_quantize_per_tensor_affine geqrf _lu_with_info qr svd triangular_solve fractional_max_pool2d
        fractional_max_pool3d adaptive_max_pool3d multilabel_margin_loss_forward linalg_qr linalg_cholesky_ex linalg_svd
        linalg_eig linalg_eigh linalg_lstsq linalg_inv_ex
    """,
    "promote": "cat stack index_copy",
}
# "Op Eligibility": a dtype that the caller names is respected; here it is float32.
_NAMED = {"wide": ["softmax(dtype=float32)", "sum(dtype=float32)"]}
# What the CPU's list calls by the name of the operator behind it.
_SPELLED = {"cross_entropy_loss": "cross_entropy", "grid_sampler": "grid_sample"}


def _rules(lists: dict[str, str]) -> dict[str, str]:
    return {
        _SPELLED.get(name, name): rule
        for rule, names in lists.items()
        for name in [*names.split(), *_NAMED.get(rule, ())]
    }


_BY_DEVICE = {"cuda": _rules(_CUDA), "cpu": _rules(_CPU)}

# Name of the operation -> device -> rule, where its list for that device has it.
DOCUMENTED: dict[str, dict[str, str]] = {
    name: {device: rules[name] for device, rules in _BY_DEVICE.items() if name in rules}
    for name in sorted({*_BY_DEVICE["cuda"], *_BY_DEVICE["cpu"]})
}

# What torch 2.13 casts though no list has it: measured on a CPU, and asked of its dispatcher for CUDA.
UNLISTED: dict[str, dict[str, str]] = {
    "cpu": {"einsum": NARROW, "tensordot": NARROW, "multi_dot": NARROW, "RNNCell": NARROW, "smooth_l1_loss": WIDE},
    "cuda": {
        "einsum": NARROW,
        "scaled_dot_product_attention": NARROW,
        "square": WIDE,
        "rms_norm": WIDE,
        "vector_norm": WIDE,
        "logsumexp": WIDE,
        "huber_loss": WIDE,
        "interpolate": WIDE,
    },
}

# What the dtype of the result hides: the float32 state of such a cell makes its result float32 on a CPU.
INSIDE: dict[str, dict[str, str]] = {
    "cpu": dict.fromkeys(("LSTMCell", "GRUCell"), "its products are cast down"),
    "cuda": {},
}

# In no list, since they promote without autocast, on every device.
NATIVE = frozenset({"add", "cat", "div", "mul", "stack", "sub", "where"})

# Other names by which people look for an operation, where letters and digits are not the same; each has its rules.
ALSO: dict[str, tuple[str, ...]] = {
    "matmul": ("@",),
    "pow": ("**",),
    "add": ("+",),
    "sub": ("-",),
    "mul": ("*",),
    "div": ("/",),
    "scaled_dot_product_attention": ("SDPA",),
    "batch_norm": ("nn.BatchNorm1d", "nn.BatchNorm2d", "nn.BatchNorm3d"),
    "interpolate": ("nn.Upsample",),
    "binary_cross_entropy": ("nn.BCELoss",),
    "binary_cross_entropy_with_logits": ("nn.BCEWithLogitsLoss",),
    "cross_entropy": ("nn.CrossEntropyLoss",),
    "kl_div": ("nn.KLDivLoss",),
}


def documented(name: str, device: str) -> str:
    """Return the rule that the documentation gives an operation on "cpu" or "cuda": what is in no list follows."""
    return DOCUMENTED.get(name, {}).get(device, FOLLOWS)
