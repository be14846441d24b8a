"""Formulas as MathML, which browsers draw without a script: docutils' own converter, in Sphinx."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml


def convert(writer: Any, node: nodes.Node, as_block: bool) -> str:
    """The formula of a node; a build with warnings as errors stops at one that cannot be converted."""
    try:
        return tex2mathml(node.astext(), as_block=as_block)
    except MathError as error:
        writer.document.reporter.warning(f"Cannot convert {node.astext()!r}: {error}")
        return f"<code>{writer.encode(node.astext())}</code>"


def visit_inline(writer: Any, node: nodes.math) -> None:
    """A formula in a line of text."""
    writer.body.append(convert(writer, node, as_block=False))
    raise nodes.SkipNode


def visit_block(writer: Any, node: nodes.math_block) -> None:
    """A formula of its own."""
    writer.body.append(f'<div class="formula">{convert(writer, node, as_block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, Any]:
    """Offer the renderer; `html_math_renderer = "mathml"` takes it."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
