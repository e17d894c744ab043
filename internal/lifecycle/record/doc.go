// Package record holds the durable records of a Machine beside its state. The [Record] is in the
// state's Secret. Others are annotations of the Machine, such as the [Witness] of its instance. The
// package reads and writes them and decides nothing.
package record
