// Package record is what is recorded durably of a Machine beside its state: in the state's Secret, which is the [Record], and in annotations of the
// Machine, such as the [Witness] of its instance. It reads and writes their text, and decides nothing.
package record
