"""Advice → Markdown and JSON: the table, the crossovers, and the decision flow filled in."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from benchkit.advice import CPU, GPU, Advice, Crossover, Size, Time, winner
from benchkit.rendering import escape_markdown, quantity
from benchkit.roofline import Roofs, work

COLUMNS = (
    "n",
    "best on the CPU",
    "time",
    "% of roof",
    "best on the GPU",
    "time",
    "% of roof",
    "with transfers",
    "resident: winner",
    "with transfers: winner",
    "GPU pays from k products",
)


def markdown(advices: Sequence[Advice]) -> str:
    return "\n".join(_section(advice) for advice in advices)


def as_json(advices: Sequence[Advice]) -> str:
    document = {"schema": 1, "machines": [_record(advice) for advice in advices]}
    return json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


# ---- Markdown ---------------------------------------------------------------------------------


def _section(advice: Advice) -> str:
    lines = [
        f"## {advice.op}: {title(advice)}",
        "",
        *_roof_lines(advice),
        "",
        "| " + " | ".join(COLUMNS) + " |",
        "|" + " ---: |" * len(COLUMNS),
    ]
    lines += [
        "| " + " | ".join(map(escape_markdown, _cells(size, advice))) + " |"
        for size in advice.sizes
    ]
    lines += ["", "Where the answer turns:", ""]
    lines += [f"- {turn.question}: {turn.sentence()}" for turn in advice.crossovers]
    lines += ["", "The decision, with this machine's figures:", ""]
    lines += [f"{i}. {step}" for i, step in enumerate(decision_flow(advice), 1)]
    if advice.remarks:
        lines += ["", *(f"> {escape_markdown(remark)}" for remark in advice.remarks)]
    return "\n".join(lines) + "\n"


def title(advice: Advice) -> str:
    cold = ", cold caches" if advice.machine.get("cache") == "cold" else ""
    return f"{place(advice.machine, CPU)} | {place(advice.machine, GPU)}{cold}"


def place(machine: Mapping[str, Any], side: str) -> str:
    """Where a side's rows ran, from the context of the run."""
    if side == CPU:
        return f"{machine.get('cpu_model', 'unknown CPU')}, {machine.get('threads', '?')} threads"
    device = machine.get("cl_device", "no OpenCL device")
    played = " (a CPU, through OpenCL)" if machine.get("cl_device_type") == "CPU" else ""
    return f"{device}{played}"


def _roof_lines(advice: Advice) -> list[str]:
    return [
        f"{side}: {_rate(roofs.flops, 'FLOP/s')} of multiply-adds, {_rate(roofs.memory, 'B/s')} "
        f"of copy; they meet at {_balance(roofs)} FLOP/byte  "
        for side, roofs in advice.roofs.items()
    ]


def _cells(size: Size, advice: Advice) -> list[str]:
    def short(time: Time | None) -> str:
        return time.name.split("/")[-1] if time else "–"

    def seconds(time: Time | None) -> str:
        return quantity(time.seconds) if time else "–"

    def share(side: str) -> str:
        percent = size.percent.get(side)
        return "–" if percent is None else f"{percent:.3g}"

    def who(time: Time | None) -> str:
        return winner(size.cpu, time) if size.cpu and time else "–"

    return [
        str(size.n),
        short(size.cpu),
        seconds(size.cpu),
        share(CPU),
        short(size.gpu),
        seconds(size.gpu),
        share(GPU),
        seconds(size.transfers),
        who(size.gpu),
        who(size.transfers),
        str(advice.products.get(size.n) or "–"),
    ]


def decision_flow(advice: Advice) -> list[str]:
    """The questions in the order in which they are to be asked, each with its answer here."""
    largest = advice.sizes[-1]
    complete = [size for size in advice.sizes if advice.products.get(size.n)]
    amount = work(advice.op, largest.n)
    intensity = amount[0] / amount[1] if amount else 0
    turns = {turn.question: turn for turn in advice.crossovers}
    first, second, *rest = turns.values()
    return [
        f"Is there enough arithmetic for the data? {advice.op} at n = {largest.n} does "
        f"{intensity:.3g} operations a byte. {_sides_of_the_balance(advice, intensity)}",
        f"Is the CPU side optimised? Compare with its best, not with a triple loop: "
        f"{_best(largest.cpu)}.",
        f"Are the data on the device already? {_sentence(first)}.",
        f"Must one product pay for its transfers? {_sentence(second)}.",
        "Do many products share the data? "
        + "; ".join(f"{turn.question.split()[0]} products: {turn.sentence()}" for turn in rest)
        + f". The least number that pays: {_least(advice, complete)}.",
        f"How much is left? {_left(largest)}",
        "The last word is a measurement of your own sizes: bench --n=… and this tool again.",
    ]


def _sides_of_the_balance(advice: Advice, intensity: float) -> str:
    words = []
    for side, roofs in advice.roofs.items():
        if roofs.flops is None or roofs.memory is None:
            continue
        bound = "arithmetic" if intensity > roofs.flops / roofs.memory else "memory traffic"
        words.append(f"the {side} needs {_balance(roofs)}, so {bound} bounds it there")
    text = "; ".join(words)
    return text[:1].upper() + text[1:] + "." if text else "The run has no Peak rows to hold it to."


def _best(time: Time | None) -> str:
    return f"{time.name} in {quantity(time.seconds)}" if time else "not measured"


def _sentence(turn: Crossover) -> str:
    text = turn.sentence()
    return text[:1].upper() + text[1:]


def _least(advice: Advice, complete: Sequence[Size]) -> str:
    words = [f"{advice.products[size.n]} at n = {size.n}" for size in complete[-1:]]
    return words[0] if words else "not measured"


def _left(size: Size) -> str:
    words = [
        f"{side}: {'no measured roof' if percent is None else f'{percent:.3g} % of its roof'}"
        for side, percent in size.percent.items()
    ]
    return f"At n = {size.n} the best rows reach: {', '.join(words) or 'nothing measured'}."


def _rate(value: float | None, unit: str) -> str:
    if value is None:
        return "not measured"
    scale, prefix = (1e12, "T") if value >= 1e12 else (1e9, "G")
    return f"{value / scale:.4g} {prefix}{unit}"


def _balance(roofs: Roofs) -> str:
    if roofs.flops is None or roofs.memory is None:
        return "–"
    return f"{roofs.flops / roofs.memory:.3g}"


# ---- JSON -------------------------------------------------------------------------------------


def _record(advice: Advice) -> dict[str, Any]:
    return {
        "op": advice.op,
        "machine": advice.machine,
        "roofs": {
            side: {"flops_per_second": roofs.flops, "bytes_per_second": roofs.levels}
            for side, roofs in advice.roofs.items()
        },
        "sizes": [
            {
                "n": size.n,
                "cpu": _time_record(size.cpu),
                "gpu": _time_record(size.gpu),
                "gpu_with_transfers": _time_record(size.transfers),
                "percent_of_roof": size.percent,
                "least_products": advice.products.get(size.n),
            }
            for size in advice.sizes
        ],
        "crossovers": [
            {
                "question": turn.question,
                "kind": turn.kind,
                "cpu_up_to": turn.low,
                "gpu_from": turn.high,
                "estimate": turn.estimate,
                "answers": {str(n): word for n, word in turn.answers.items()},
            }
            for turn in advice.crossovers
        ],
        "decision_flow": decision_flow(advice),
        "remarks": advice.remarks,
    }


def _time_record(time: Time | None) -> dict[str, Any] | None:
    if time is None:
        return None
    return {"row": time.name, "seconds": time.seconds, "low": time.low, "high": time.high}
