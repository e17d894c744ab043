package termination

import (
	"context"
	"net/http"
	"strings"
)

const (
	gcpPreempted = "/computeMetadata/v1/instance/preempted"
	// gcpHeader is sent in requests and responses, to detect other services at the same address.
	gcpHeader, gcpFlavor = "Metadata-Flavor", "Google"
)

// gcp is the metadata server of Compute Engine.
type gcp struct{ service *metadata }

// Terminating implements Source. The value turns TRUE when the preemption begins.
func (g *gcp) Terminating(ctx context.Context) (bool, error) {
	read, err := g.service.get(ctx, gcpPreempted, http.Header{gcpHeader: {gcpFlavor}})
	if err != nil {
		return false, err
	}
	if read.status != http.StatusOK {
		return false, g.service.refuse(read, gcpPreempted)
	}
	if read.header.Get(gcpHeader) != gcpFlavor {
		return false, g.service.misread(read, gcpPreempted, "Google's: the header "+gcpHeader+" is missing")
	}
	switch strings.TrimSpace(read.body) {
	case "TRUE":
		return true, nil
	case "FALSE":
		return false, nil
	}
	return false, g.service.misread(read, gcpPreempted, "TRUE or FALSE")
}
