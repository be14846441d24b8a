"""Rows in memory -> batches of tensors."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def batch_rows(arrays: Any, batch_size: int) -> tf.data.Dataset:
    """Batches of a structure of arrays that share their first axis, in order, once."""
    tensors, rows = _as_tensors(arrays)

    def gather(start: tf.Tensor) -> Any:
        return tf.nest.map_structure(lambda tensor: tensor[start : start + batch_size], tensors)

    return tf.data.Dataset.range(0, rows, batch_size).map(gather).prefetch(2)


def shuffle_rows(arrays: Any, batch_size: int, seed: int) -> tf.data.Dataset:
    """Endless batches of equal size: one permutation of the rows after another.

    A batch may reach over the end of one permutation into the next, so that all batches have one
    shape (another shape would be compiled again) and every row is used equally often. Only the seed
    decides the order. Rows are gathered batch by batch: slicing row by row would cost more than a
    training step.
    """
    tensors, rows = _as_tensors(arrays)

    def permute(epoch: tf.Tensor) -> tf.Tensor:
        order = tf.range(rows, dtype=tf.int64)
        return tf.random.experimental.stateless_shuffle(order, seed=[tf.cast(seed, tf.int64), epoch])

    def gather(chosen: tf.Tensor) -> Any:
        return tf.nest.map_structure(lambda tensor: tf.gather(tensor, chosen), tensors)

    order = tf.data.Dataset.counter().map(permute)
    return order.rebatch(batch_size, drop_remainder=True).map(gather).prefetch(2)


def _as_tensors(arrays: Any) -> tuple[Any, int]:
    tensors = tf.nest.map_structure(tf.convert_to_tensor, arrays)
    return tensors, int(tf.nest.flatten(tensors)[0].shape[0])
