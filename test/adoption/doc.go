// Package adoption tests adopt/ and inventory/ of the modules with a real engine, real providers and local
// infrastructure: it previews, adopts and lists instances that something else created, and expects others' instances to
// be rejected. No manager runs.
package adoption
