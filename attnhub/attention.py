"""The handle that `get` returns: a value to call, resolved per call, with its plans kept."""

from __future__ import annotations

import logging
import threading
import weakref
from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple, cast

from attnhub import compiling, lowering, registry, settings
from attnhub.explanation import Explanation
from attnhub.integrations import torch as torch_integration
from attnhub.plan_key import plan_key
from attnhub.settings import Spec, make_spec
from attnhub.standins import stand_in, stand_ins
from attnhub_contracts import Arrays, Attention, Run, bind
from attnhub_contracts.arrays import framework_of

log = logging.getLogger("attnhub")

#: Plans kept per handle; the oldest goes when one more is made.
MAX_PLANS = 1024

_LOCK = threading.RLock()
_HANDLES: weakref.WeakValueDictionary[Spec, Handle] = weakref.WeakValueDictionary()
#: Keeps the plans of `attnhub.get("cpu")(...)`, written where it is called, from going with the handle.
_RECENT: deque[Handle] = deque(maxlen=256)


class _Plan(NamedTuple):
    run: Run
    #: True where `query_offset` is data, and not part of the request.
    offset_is_array: bool


def get(
    platform: str = "auto",
    *,
    backend: str | None = None,
    framework: str | None = None,
    need: Iterable[str] = (),
    relax: Iterable[str] = (),
    fallback: str | None = None,
    verify: str | None = None,
    allow_failing: bool = False,
    device_kind: str | None = None,
) -> Handle:
    """Return attention as a callable, with the contract's arguments (`help(attnhub.get())` shows them).

    Touches no device and imports no framework: what is there is found out by the first call.

    Args:
        platform: "cpu", "gpu" ("cuda", "rocm") or "tpu"; "auto" computes where the arrays are.
        backend: the name of a backend, which then serves or refuses; None lets every call choose.
        framework: "jax", "numpy" or "torch" to refuse arrays of any other; None takes all.
        need: words of `attnhub.FEATURES` that a backend must claim beyond what the arguments ask for, such as
            {"nonfinite_padding"}, {"linear_memory"} or {"grad_bias"}.
        relax: promises to give up, of "hidden_overflow" and "nan_propagation".
        fallback: the platform to compute on where `platform` is not here; None raises `DeviceError` then.
        verify: what a backend must have shown: "gate" checks one that has no conformance record, quickly and once, and
            refuses what failed; "require" refuses whatever has no full-tier record; "off" does not ask. None leaves it
            to `attnhub.override`, then to ATTNHUB_VERIFY, then takes "gate".
        allow_failing: True lets a backend that failed serve where no other does.
        device_kind: a TPU to compile ahead of time for on a host that has none: "v4", "v5e", "v5p", "v6e", "tpu7x", or
            a `device_kind` of JAX. Such a handle is to be traced, and lowered for "tpu". Not needed where the traced
            arrays are on a mesh of such devices.

    Returns:
        A handle: hashable, picklable, deep-copyable; equal requests give the same object.

    Raises:
        ArgumentError: an unknown platform, framework, policy, word or kind; the message suggests the nearest.
    """
    return _handle(make_spec(platform, backend, framework, need, relax, fallback, verify, allow_failing, device_kind))


class Handle:
    """Attention for one request of `get`. Call it as the contract says; `explain` tells who would serve."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._token = spec.token()
        self._plans: dict[Any, _Plan] = {}
        self._said_fallback = False

    def __call__(  # noqa: D102  # its docstring is the contract's, set below
        self,
        query: Any,
        key: Any,
        value: Any,
        *,
        bias: Any = None,
        mask: Any = None,
        is_causal: bool = False,
        query_offset: Any = None,
        scale: float | None = None,
        logits_soft_cap: float | None = None,
        local_window_size: int | tuple[int | None, int | None] | None = None,
        sinks: Any = None,
        query_seq_lengths: Any = None,
        key_value_seq_lengths: Any = None,
        query_segment_ids: Any = None,
        key_value_segment_ids: Any = None,
        return_lse: bool = False,
        precision: str = "default",
        layout: str = "BTNH",
    ) -> Any:
        arguments = {
            "bias": bias,
            "mask": mask,
            "is_causal": is_causal,
            "query_offset": query_offset,
            "scale": scale,
            "logits_soft_cap": logits_soft_cap,
            "local_window_size": local_window_size,
            "sinks": sinks,
            "query_seq_lengths": query_seq_lengths,
            "key_value_seq_lengths": key_value_seq_lengths,
            "query_segment_ids": query_segment_ids,
            "key_value_segment_ids": key_value_segment_ids,
            "return_lse": return_lse,
            "precision": precision,
            "layout": layout,
        }
        if framework_of(query) == "torch" and torch_integration.is_compiling():
            return compiling.attend(self._token, self._spec.needs, query, key, value, arguments)
        plan = self._plan(query, key, value, arguments)
        return plan.run(
            Arrays(
                query,
                key,
                value,
                bias,
                mask,
                query_offset if plan.offset_is_array else None,
                sinks,
                query_seq_lengths,
                key_value_seq_lengths,
                query_segment_ids,
                key_value_segment_ids,
            )
        )

    def explain(self, query: Any, key: Any, value: Any, **arguments: Any) -> Explanation:
        """Return who would serve this call, and every reason why the others would not; does not compute it.

        A backend without a conformance record is checked, once, as the call itself would.

        Takes the arguments of a call. In the place of any array, a shape (a tuple of ints), an `ArraySpec`, a
        `jax.ShapeDtypeStruct` or a tensor on PyTorch's meta device does. A shape is float32 (bool for `mask`, int32
        for lengths, ids and offset), of the handle's framework or query's; with neither, backends of all compete.

        Raises:
            ArgumentError: the contract forbids the call. Every other error is in the explanation.
        """
        framework = self._spec.framework or framework_of(query)
        triple = [stand_in(name, x, framework) for name, x in (("query", query), ("key", key), ("value", value))]
        bound = bind(*triple, **stand_ins(arguments, framework), needs=self._spec.needs)
        return lowering.settle(self._spec, bound, settings.ambient())[0]

    def using(self, **changes: Any) -> Handle:
        """Return the handle that `get` gives for this one's request with `changes`: `using(backend="jax_xla")`."""
        spec = self._spec
        asked = {name: getattr(spec, name) for name in Spec.__dataclass_fields__}
        unknown = set(changes) - set(asked)
        if unknown:
            accepted = ", ".join(asked)
            raise TypeError(f"using() got an unexpected argument {sorted(unknown)[0]!r}; accepted: {accepted}.")
        return _handle(make_spec(**{**asked, **changes}))

    def drop_plans(self) -> None:
        """Forget every plan; the next call of each kind makes its own anew."""
        self._plans.clear()
        self._said_fallback = False

    def _plan(self, query: Any, key: Any, value: Any, arguments: dict[str, Any]) -> _Plan:
        around = settings.ambient()
        try:
            found_under = plan_key(query, key, value, arguments, around)
            plan = self._plans.get(found_under)
        except (AttributeError, TypeError):  # no array, or nothing hashable: `bind` has the words for it
            return self._make_plan(query, key, value, arguments, around)
        if plan is None:
            plan = self._make_plan(query, key, value, arguments, around)
            self._keep(found_under, plan)
        return plan

    def _make_plan(
        self, query: Any, key: Any, value: Any, arguments: dict[str, Any], around: settings.Ambient
    ) -> _Plan:
        bound = bind(query, key, value, **arguments, needs=self._spec.needs)
        explanation, run = lowering.settle(self._spec, bound, around)
        if run is None:
            raise cast(Exception, explanation.error)
        registry.say_choice(explanation)
        self._say_fallback(explanation)
        return _Plan(run, bound.request.query_offset == "array")

    def _keep(self, key: Any, plan: _Plan) -> None:
        with _LOCK:
            self._plans[key] = plan
            while len(self._plans) > MAX_PLANS:
                del self._plans[next(iter(self._plans))]

    def _say_fallback(self, explanation: Explanation) -> None:
        if explanation.fell_back and not self._said_fallback:
            self._said_fallback = True
            log.warning("attnhub: computing on %s; %s", explanation.platform, explanation.platform_source)

    def __eq__(self, other: object) -> bool:
        return self._spec == other._spec if isinstance(other, Handle) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._spec)

    def __repr__(self) -> str:
        default = Spec()
        asked = {name: getattr(self._spec, name) for name in Spec.__dataclass_fields__}
        changed = [f"{name}={_show(x)}" for name, x in asked.items() if x != getattr(default, name)]
        return f"attnhub.get({', '.join(changed)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _handle, (self._spec,)


def explain(
    query: Any,
    key: Any,
    value: Any,
    *,
    platform: str = "auto",
    backend: str | None = None,
    framework: str | None = None,
    need: Iterable[str] = (),
    relax: Iterable[str] = (),
    fallback: str | None = None,
    verify: str | None = None,
    allow_failing: bool = False,
    device_kind: str | None = None,
    **arguments: Any,
) -> Explanation:
    """Return `get(platform, ...).explain(query, key, value, ...)`: who would serve this call, and why."""
    handle = get(
        platform,
        backend=backend,
        framework=framework,
        need=need,
        relax=relax,
        fallback=fallback,
        verify=verify,
        allow_failing=allow_failing,
        device_kind=device_kind,
    )
    return handle.explain(query, key, value, **arguments)


def _handle(spec: Spec) -> Handle:
    with _LOCK:
        handle = _HANDLES.get(spec)
        if handle is None:
            handle = _HANDLES[spec] = Handle(spec)
            _RECENT.append(handle)
        return handle


def forget() -> None:
    """Discover, probe, load and plan anew at the next call: after plugins were installed or devices came and went."""
    with _LOCK:
        registry.forget()
        for handle in _HANDLES.values():
            handle.drop_plans()


def _show(value: Any) -> str:
    return repr(set(value)) if isinstance(value, frozenset) else repr(value)


Handle.__call__.__doc__ = Attention.__call__.__doc__
_: type[Attention] = Handle
