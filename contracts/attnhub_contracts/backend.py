"""What a plugin registers: frozen data, and two functions that may import something heavy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal

from attnhub_contracts.arrays import FRAMEWORKS, Arrays
from attnhub_contracts.errors import PluginError
from attnhub_contracts.features import DTYPES, FEATURES, GRADIENTS, suggest
from attnhub_contracts.request import Request
from attnhub_contracts.waivers import Waiver

CONTRACT_VERSION: Final = "1.0"

PLATFORMS: Final = ("cpu", "gpu", "tpu")

#: From first to last choice, among backends that serve a request equally well.
#: "kernel": made for the device; "portable": runs anywhere; "reference": for comparing, not for speed.
KINDS: Final = ("kernel", "portable", "reference")

Kind = Literal["kernel", "portable", "reference"]

#: What `Backend.operations` may hold; "attend" it must.
OPERATIONS: Final = ("attend", "attend_interpreted")

#: Called with the arrays of one call; returns the output, or `(output, lse)` if the request says `return_lse`.
Run = Callable[[Arrays], Any]
#: Called once per request; makes whatever does not depend on data. Raises `UnsupportedError` as a last resort.
Prepare = Callable[[Request], Run]


@dataclass(frozen=True)
class Device:
    """A device that a backend can use: `platform` "cpu", "gpu" or "tpu", `kind` as its library names it."""

    platform: str
    kind: str
    count: int = 1
    #: The library that reported it, for messages: "jax", "torch".
    library: str = ""
    #: The version of what drives it, where answers may depend on that: the GPU's driver, the TPU's runtime.
    driver: str = ""

    def __str__(self) -> str:
        return f"{self.platform} x{self.count} ({self.kind})"


@dataclass(frozen=True)
class Refusal:
    """Why a backend does not serve: a sentence with the values in it, and the feature word where there is one."""

    reason: str
    feature: str = ""

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True)
class Limits:
    """The largest sizes that a capability serves; None is unlimited. Letters as in `Request`."""

    max_head_dim: int | None = None
    max_value_head_dim: int | None = None
    #: H and Hv must be multiples of it.
    head_dim_multiple: int = 1
    max_batch: int | None = None
    max_heads: int | None = None
    #: B * N, for kernels that put both on one grid axis.
    max_batch_heads: int | None = None
    max_length: int | None = None
    #: Elements in any one of query, key, value and the output.
    max_elements: int | None = None
    #: Devices that share the arrays of one call.
    max_devices: int | None = None

    def admit(self, request: Request) -> bool:
        """Tell whether the request is within every limit; safe where sizes are a tracer's symbols."""
        return not self._over(request)

    def refuse(self, request: Request) -> list[Refusal]:
        """Return one refusal for each limit that the request exceeds."""
        return [
            Refusal(f"{what} is {size}; {_limit_in_words(limit, most)}", limit)
            for limit, what, size, most in self._over(request)
        ]

    def _over(self, request: Request) -> list[tuple[str, str, int, int]]:
        """Return (limit, what, size, most) of each limit exceeded; formatting here would fix a symbol's value."""
        r = request
        head, value_head = "head dimension H", "value head dimension Hv"
        sizes = (
            ("max_head_dim", head, r.H, self.max_head_dim),
            ("max_value_head_dim", value_head, r.Hv, self.max_value_head_dim),
            ("max_batch", "batch B", r.B, self.max_batch),
            ("max_heads", "query heads N", r.N, self.max_heads),
            ("max_batch_heads", "batch times heads B * N", r.B * r.N, self.max_batch_heads),
            ("max_devices", "devices that share the arrays", r.devices, self.max_devices),
            ("max_length", "query length T", r.T, self.max_length),
            ("max_length", "key/value length S", r.S, self.max_length),
            ("max_elements", "elements of query", r.B * r.T * r.N * r.H, self.max_elements),
            ("max_elements", "elements of key", r.B * r.S * r.K * r.H, self.max_elements),
            ("max_elements", "elements of value", r.B * r.S * r.K * r.Hv, self.max_elements),
            ("max_elements", "elements of the output", r.B * r.T * r.N * r.Hv, self.max_elements),
        )
        over = [(limit, what, size, most) for limit, what, size, most in sizes if most is not None and size > most]
        step = self.head_dim_multiple
        if step != 1:
            over += [
                ("head_dim_multiple", what, size, step)
                for what, size in ((head, r.H), (value_head, r.Hv))
                if size % step
            ]
        return over


@dataclass(frozen=True)
class Capability:
    """One way in which a backend serves: what it claims, to the word. Claims are tested both ways.

    `excludes` and `quadratic` are sets of words that occur together in a request: features, gradients (or
    "gradients" for any of them) and the dtype. `frozenset({"return_lse", "grad_query"})` in `excludes` means that
    the gradient is not served where the log-sum-exp is asked for.
    """

    features: frozenset[str]
    dtypes: frozenset[str]
    #: Words of `features.GRADIENTS`.
    gradients: frozenset[str] = frozenset()
    #: Combinations that are not served although each word is.
    excludes: tuple[frozenset[str], ...] = ()
    #: Combinations that take memory quadratic in sequence length; everything else is linear.
    quadratic: tuple[frozenset[str], ...] = ()
    limits: Limits = Limits()
    #: Names it among the backend's capabilities; `Request.capability` tells the adapter which was chosen.
    name: str = "default"
    #: The platforms it holds for; None is all of the backend's.
    platforms: frozenset[str] | None = None

    def refuse(self, request: Request) -> list[Refusal]:
        """Return every reason not to serve `request`, the likeliest to be acted on first; empty means served."""
        return [*self.refuse_words(request.dtype, request.needed()), *self.limits.refuse(request)]

    def refuse_words(self, dtype: str, needed: tuple[str, ...]) -> list[Refusal]:
        """Return the refusals that follow from words alone, without sizes."""
        refusals = []
        if dtype not in self.dtypes:
            served = ", ".join(name for name in DTYPES if name in self.dtypes)
            refusals.append(Refusal(f"dtype {dtype} is not served; {served} is", "dtype"))
        claimed = self.features | self.gradients | {"linear_memory"}
        for word in needed:
            if word not in claimed:
                refusals.append(Refusal(f"`{word}` is not served ({FEATURES.get(word, 'a newer feature')})", word))
        words = _expand(dtype, needed)
        for combination in self.excludes:
            if combination <= words:
                listed = " with ".join(sorted(combination))
                refusals.append(Refusal(f"{listed} is not served together", _feature_in(combination)))
        if "linear_memory" in needed and self.memory(dtype, needed) == "quadratic":
            refusals.append(Refusal("this call takes memory quadratic in sequence length", "linear_memory"))
        return refusals

    def memory(self, dtype: str, needed: tuple[str, ...]) -> Literal["linear", "quadratic"]:
        """Return how the extra memory of a call with these words grows with sequence length."""
        words = _expand(dtype, needed)
        return "quadratic" if any(combination <= words for combination in self.quadratic) else "linear"


@dataclass(frozen=True)
class Backend:
    """A named kernel: what it claims, how to find its device, how to load it.

    `probe(platform)` returns the `Device` it would use there, or a `Refusal` saying what is there instead; its
    `feature` is "broken" where a library is installed and does not work. `operations["attend"]()` imports the adapter
    and returns its `prepare(request) -> run(arrays)`. `operations["attend_interpreted"]`, where there is one, is alike,
    and computes the same kernel on the CPU by an interpreter: what the suite runs where the device is not.
    Nothing but these and `target` may import anything heavy.
    """

    #: `<framework>_<kernel>`, lower case.
    name: str
    #: "jax", "numpy" or "torch".
    framework: str
    platforms: frozenset[str]
    #: In order of preference; the first that serves a request is used.
    capabilities: tuple[Capability, ...]
    probe: Callable[[str], Device | Refusal] = field(compare=False)
    operations: Mapping[str, Callable[[], Prepare]] = field(compare=False)
    kind: Kind = "kernel"
    #: Distributions whose versions can change its answers: ("jax", "jaxlib").
    libraries: tuple[str, ...] = ()
    #: "" takes the version of the distribution that registered it.
    version: str = ""
    #: The contract version that it was written for.
    contract: str = CONTRACT_VERSION
    #: Conformance cases that may fail for a while; what they cover is not served meanwhile.
    waivers: tuple[Waiver, ...] = ()
    #: For tracing on a host without the device: `target("TPU v5 lite")` returns the `Device` of that kind as `probe`
    #: would there (`driver` included, or its records do not count here), or a `Refusal`. None: it cannot.
    target: Callable[[str], Device | Refusal] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_choice(self, "framework", self.framework, FRAMEWORKS)
        _check_choice(self, "kind", self.kind, KINDS)
        _check_types(self)
        for platform in self.platforms:
            _check_choice(self, "platforms", platform, PLATFORMS)
        if not self.capabilities:
            raise PluginError(f"backend {self.name!r} has no `capabilities`; it needs at least one.")
        _check_operations(self)

    def capabilities_for(self, platform: str) -> tuple[Capability, ...]:
        """Return the capabilities that hold on `platform`."""
        return tuple(c for c in self.capabilities if c.platforms is None or platform in c.platforms)

    def unknown_words(self) -> list[str]:
        """Return the words in its claims that this version's vocabulary lacks."""
        known = {*FEATURES, *DTYPES, "gradients"}
        claimed: set[str] = set()
        for capability in self.capabilities:
            claimed |= capability.features | capability.gradients | capability.dtypes
            claimed.update(*capability.excludes, *capability.quadratic)
        return sorted(claimed - known)


def _limit_in_words(limit: str, most: int) -> str:
    return f"multiples of {most} are served" if limit == "head_dim_multiple" else f"at most {most} is served"


def is_newer_contract(version: str) -> bool:
    """Tell whether `version` is newer than the contract implemented here."""
    return _version_numbers(version) > _version_numbers(CONTRACT_VERSION)


def _version_numbers(version: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in version.split("."))
    except ValueError:
        raise PluginError(f"contract version {version!r} is not of the form '1.0'.") from None


def _expand(dtype: str, needed: tuple[str, ...]) -> frozenset[str]:
    words = {dtype, *needed}
    if not words.isdisjoint(GRADIENTS):
        words.add("gradients")
    return frozenset(words)


def _feature_in(combination: frozenset[str]) -> str:
    return next((word for word in sorted(combination) if word in FEATURES), "dtype")


def _check_name(name: Any) -> None:
    if not (isinstance(name, str) and name.isidentifier() and name == name.lower()):
        raise PluginError(f"backend name {name!r} is not a lower-case identifier like 'jax_splash'.")
    if name in PLATFORMS or name == "auto":
        raise PluginError(f"backend name {name!r} is a platform's; use '<framework>_<kernel>'.")


def _check_choice(backend: Backend, argument: str, value: Any, known: tuple[str, ...]) -> None:
    if value not in known:
        raise PluginError(f"backend {backend.name!r}: `{argument}` does not know {value!r}.{suggest(value, known)}")


def _check_types(backend: Backend) -> None:
    expected: dict[str, type] = {
        "platforms": frozenset,
        "capabilities": tuple,
        "libraries": tuple,
        "version": str,
        "waivers": tuple,
    }
    for name in (f.name for f in fields(backend) if f.name in expected):
        value = getattr(backend, name)
        if not isinstance(value, expected[name]):
            raise PluginError(
                f"backend {backend.name!r}: `{name}` is {value!r}; it must be a {expected[name].__name__}."
            )
    for capability in backend.capabilities:
        if not isinstance(capability, Capability):
            raise PluginError(f"backend {backend.name!r}: `capabilities` holds {capability!r}, no `Capability`.")
    for waiver in backend.waivers:
        if not isinstance(waiver, Waiver):
            raise PluginError(f"backend {backend.name!r}: `waivers` holds {waiver!r}, no `Waiver`.")
    if not callable(backend.probe):
        raise PluginError(f"backend {backend.name!r}: `probe` is {backend.probe!r}; it must be callable.")
    target: object = backend.target
    if not (target is None or callable(target)):
        raise PluginError(f"backend {backend.name!r}: `target` is {target!r}; it must be callable, or None.")


def _check_operations(backend: Backend) -> None:
    if "attend" not in backend.operations:
        raise PluginError(f"backend {backend.name!r} has no operation 'attend'; `operations` maps it to a loader.")
    for operation in backend.operations:
        if operation not in OPERATIONS and not is_newer_contract(backend.contract):
            raise PluginError(
                f"backend {backend.name!r}: `operations` does not know {operation!r}.{suggest(operation, OPERATIONS)}"
            )
