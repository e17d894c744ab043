package live

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

var errWrites = errors.New("a preview writes nothing to the cluster")

// readOnly is a client that rejects writes.
type readOnly struct{ client.Client }

// Create implements client.Writer.
func (readOnly) Create(context.Context, client.Object, ...client.CreateOption) error {
	return errWrites
}

// Delete implements client.Writer.
func (readOnly) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	return errWrites
}

// Update implements client.Writer.
func (readOnly) Update(context.Context, client.Object, ...client.UpdateOption) error {
	return errWrites
}

// Patch implements client.Writer.
func (readOnly) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return errWrites
}

// DeleteAllOf implements client.Writer.
func (readOnly) DeleteAllOf(context.Context, client.Object, ...client.DeleteAllOfOption) error {
	return errWrites
}

// Status implements client.StatusClient.
func (readOnly) Status() client.SubResourceWriter { return readOnlyPart{} }

// SubResource implements client.SubResourceClientConstructor.
func (readOnly) SubResource(string) client.SubResourceClient { return readOnlyPart{} }

// readOnlyPart rejects writes to a subresource.
type readOnlyPart struct{ client.SubResourceClient }

// Create implements client.SubResourceWriter.
func (readOnlyPart) Create(context.Context, client.Object, client.Object, ...client.SubResourceCreateOption) error {
	return errWrites
}

// Update implements client.SubResourceWriter.
func (readOnlyPart) Update(context.Context, client.Object, ...client.SubResourceUpdateOption) error {
	return errWrites
}

// Patch implements client.SubResourceWriter.
func (readOnlyPart) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return errWrites
}
