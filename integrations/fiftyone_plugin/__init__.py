"""An operator of FiftyOne: correct the labels of a dataset, and write the result back to it.

Copy this folder to the folder of plugins (``fiftyone config plugins_dir``), or name its parent in
``FIFTYONE_PLUGINS_DIR``. The Python of FiftyOne must have vsgraph and its encoders installed.
"""

import tempfile

import fiftyone as fo
from fiftyone import operators as foo
from fiftyone.operators import types

import vsgraph


class CorrectLabels(foo.Operator):
    """Keeps, relabels or rejects every image; labels and reasons become fields."""

    @property
    def config(self):
        """Name the operator; a long run may be delegated."""
        return foo.OperatorConfig(
            name="correct_labels", label="vsgraph: correct labels", allow_delegated_execution=True
        )

    def resolve_input(self, ctx):
        """Ask for the fields to read and to write, and for the folder of the run."""
        inputs = types.Object()
        fields = types.Choices()
        for name in ctx.dataset.get_field_schema():
            fields.add_choice(name, label=name)
        inputs.enum("label_field", fields.values(), required=True, label="label (Classification)")
        inputs.enum("text_field", fields.values(), label="text beside the image")
        inputs.str("out_field", default="vsgraph", label="field to write")
        inputs.str("meanings", label="table of meanings (path, optional)")
        inputs.str("run_folder", label="folder of the run, to resume (optional)")
        return types.Property(inputs, view=types.View(label="Correct labels"))

    def execute(self, ctx):
        """Correct the labels of the view, and write them to its samples."""
        values = {name: value for name, value in ctx.params.items() if value not in {None, ""}}
        label_field, out_field = values.pop("label_field"), values.pop("out_field", "vsgraph")
        text_field, folder = values.pop("text_field", None), values.pop("run_folder", None)
        view = ctx.target_view() if hasattr(ctx, "target_view") else ctx.view
        names = ["id", "filepath", f"{label_field}.label", *([text_field] if text_field else [])]
        columns = ("sample", "image", "label", "text")
        rows = [
            dict(zip(columns, row, strict=False))
            for row in zip(*view.values(names), strict=True)
            if row[2] is not None
        ]
        with tempfile.TemporaryDirectory() as unnamed:
            run = vsgraph.run(rows, folder or unnamed, with_report=bool(folder), **values)
            found = run.to_arrow().to_pylist()
        _write(ctx.dataset, found, out_field)
        return {**run.counts, "images": len(found)}

    def resolve_output(self, ctx):
        """Show the counts."""
        outputs = types.Object()
        for name in ctx.results:
            outputs.int(name, label=name)
        return types.Property(outputs, view=types.View(label="Corrected"))


def _write(dataset, found, out_field):
    """Write the final label with its confidence, and decision, reason and quality beside it."""
    labels = {
        row["sample"]: row["final_label"] and fo.Classification(
            label=row["final_label"], confidence=row["confidence"]
        )
        for row in found
    }  # fmt: skip
    dataset.set_values(out_field, labels, key_field="id")
    for name in ("decision", "why", "quality"):
        values = {row["sample"]: row[name] for row in found}
        dataset.set_values(f"{out_field}_{name}", values, key_field="id")


def register(plugin):
    """Tell FiftyOne of the operator."""
    plugin.register(CorrectLabels)
