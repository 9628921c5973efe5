"""`deniable mechanisms` and `deniable presets`: what there is to choose from."""

from __future__ import annotations

import inspect
import json
from dataclasses import MISSING, Field, fields
from typing import Any

import click

from deniable.mechanism import Mechanism, named
from deniable.mechanism import mechanisms as registered
from deniable.presets import PRESETS


@click.command()
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def mechanisms(*, name: str | None, as_json: bool) -> None:
    """List every mechanism: its promise, its parameters, its source; NAME alone, with the proof."""
    chosen = [named(name)] if name else list(registered().values())
    if as_json:
        click.echo(json.dumps([_facts(cls) for cls in chosen], indent=2))
        return
    for cls in chosen:
        click.echo(_text(cls))
    if name:
        for key, text in chosen[0].explains.items():
            click.echo(click.wrap_text(f"{key}: {text}", 96, "  ", "      "))
        click.echo()
        click.echo(inspect.cleandoc(inspect.getmodule(chosen[0]).__doc__ or ""))


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def presets(*, as_json: bool) -> None:
    """List the presets: mechanism, epsilon and policy together."""
    if as_json:
        click.echo(json.dumps([_preset(name) for name in PRESETS], indent=2))
        return
    for name in PRESETS:
        facts = _preset(name)
        settings = ", ".join(f"{k}={v}" for k, v in facts["parameters"].items())
        policy = ", ".join(f"{k}={v}" for k, v in facts["policy"].items()) or "defaults"
        click.echo(f"{name}\n  {facts['why']}\n  {facts['mechanism']} ({settings})\n  {policy}")


def _preset(name: str) -> dict[str, Any]:
    preset = PRESETS[name]
    usual = type(preset.policy)().to_dict()
    changed = {k: v for k, v in preset.policy.to_dict().items() if v != usual[k]}
    return {
        "name": name,
        "why": preset.why,
        "mechanism": preset.mechanism,
        "parameters": dict(preset.parameters),
        "policy": changed,
    }


def _facts(cls: type[Mechanism]) -> dict[str, Any]:
    return {
        "name": cls.name,
        "summary": cls.summary,
        "promise": cls.promise,
        "parameters": {field.name: _default(field) for field in fields(cls)},
        "explains": dict(cls.explains),
        "metrics": list(cls.accepts),
        "source": cls.source,
        "cost": cls.cost,
    }


def _default(field: Field[Any]) -> Any:
    return "required" if field.default is MISSING else field.default


def _text(cls: type[Mechanism]) -> str:
    facts = _facts(cls)
    settings = ", ".join(
        k if v == "required" else f"{k}={v}" for k, v in facts["parameters"].items()
    )
    return (
        f"{cls.name}\n  {cls.summary}\n  promise     {cls.promise}\n  parameters  {settings}\n"
        f"  metrics     {', '.join(cls.accepts)}\n  source      {cls.source}\n"
        f"  cost        {cls.cost}\n"
    )
