"""What to do about an operator that glowc lacks: names that are near to it, and what to export instead."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import get_close_matches

_INSTEAD = {
    "NonMaxSuppression": "end the model before NonMaxSuppression: give boxes and scores as outputs",
    "Loop": "export loops with a fixed number of turns, or unrolled",
    "If": "export the branch that the device needs: conditions must be constants",
    "NonZero": "the number of NonZero's results is not known when compiling; use a mask (Where) instead",
    "Unique": "the number of Unique's results is not known when compiling",
    "RandomNormalLike": "export in inference mode: model.eval()",
    "StringNormalizer": "give the model numbers: text is for the firmware",
    "TfIdfVectorizer": "give the model numbers: text is for the firmware",
    "NON_MAX_SUPPRESSION_V4": "end the model before the suppression: give boxes and scores as outputs",
    "NON_MAX_SUPPRESSION_V5": "end the model before the suppression: give boxes and scores as outputs",
    "WHERE": "the number of WHERE's results is not known when compiling; use a mask (SELECT_V2) instead",
    "UNIQUE": "the number of UNIQUE's results is not known when compiling",
    "ethos-u": "the file was compiled for an Ethos-U: give the one that Vela was given",
    "edgetpu-custom-op": "the file was compiled for an Edge TPU: give the one that its compiler was given",
    "AudioSpectrogram": "compute the features in the firmware, or with the Signal operators of TensorFlow Lite Micro",
    "Mfcc": "compute the features in the firmware, or with the Signal operators of TensorFlow Lite Micro",
}
_BEGINNINGS = {
    "Flex": "convert without tf.lite.OpsSet.SELECT_TF_OPS: operators that begin with Flex need all of TensorFlow",
    "XC_": "the file was compiled for an XMOS chip: give the one that its compiler was given",
    "HASHTABLE": "give the model numbers: text is for the firmware",
    "MaxPoolingWithArgmax2D": "operators of MediaPipe's own; use a network that resizes or transposes instead",
    "MaxUnpooling2D": "operators of MediaPipe's own; use a network that resizes or transposes instead",
    "TFLite_Detection": "only TFLite_Detection_PostProcess is known of these",
}
_NEAR, _MOST = 0.72, 3


def advice(ops: Sequence[str], known: Collection[str]) -> list[str]:
    """Return hints for operators, by their names with domains, that are not among the known ones."""
    names = [op.rpartition("::")[2] for op in ops]
    begun = (hint for name in names for begin, hint in _BEGINNINGS.items() if name.startswith(begin))
    hints = list(dict.fromkeys([*(_INSTEAD[name] for name in names if name in _INSTEAD), *begun]))
    for name in dict.fromkeys(names):
        near = get_close_matches(name, [k for k in known if k != name], _MOST, _NEAR)
        if near and name not in _INSTEAD and not name.startswith(tuple(_BEGINNINGS)):
            hints.append(f"near to {name}: {', '.join(near)}")
    return hints
