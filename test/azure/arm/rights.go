package arm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// verbs end the action of a request.
var verbs = map[string]string{
	http.MethodGet: "/read", http.MethodPut: "/write", http.MethodPatch: "/write",
	http.MethodDelete: "/delete", http.MethodPost: "/action",
}

// linked maps types of resources to the end of the action that a request needs on each one that its body names.
var linked = map[string]string{
	"Microsoft.Compute/capacityReservationGroups":         "/deploy/action",
	"Microsoft.Compute/diskEncryptionSets":                "/read",
	"Microsoft.Compute/galleries/images/versions":         "/read",
	"Microsoft.Compute/images":                            "/read",
	"Microsoft.ManagedIdentity/userAssignedIdentities":    "/assign/action",
	"Microsoft.Network/applicationSecurityGroups":         "/joinIpConfiguration/action",
	"Microsoft.Network/loadBalancers/backendAddressPools": "/join/action",
	"Microsoft.Network/networkInterfaces":                 "/join/action",
	"Microsoft.Network/networkSecurityGroups":             "/join/action",
	"Microsoft.Network/publicIPAddresses":                 "/join/action",
	"Microsoft.Network/virtualNetworks/subnets":           "/join/action",
}

// permits returns whether the client may make a request, and refuses it otherwise. Whoever may write may poll:
// OpenShift's CredentialsRequest grants no action on operations, and its controllers poll them.
func (a *Server) permits(w http.ResponseWriter, r *http.Request) bool {
	if a.allowed == nil || strings.HasPrefix(r.URL.Path, operationsPath) {
		return true
	}
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		refuse(w, http.StatusBadRequest, "InvalidRequestContent", err.Error())
		return false
	}
	r.Body = io.NopCloser(bytes.NewReader(raw))
	action := kindOf(r.URL.Path) + verbs[r.Method]
	if !a.allowed(action) {
		refuse(w, http.StatusForbidden, "AuthorizationFailed", fmt.Sprintf(
			"The client '%s' with object id '%s' does not have authorization to perform action '%s' over scope '%s'.",
			Client, Client, action, r.URL.Path))
		return false
	}
	var body any
	_ = json.Unmarshal(raw, &body) // whoever reads it reports what it is not
	for _, id := range named(body) {
		if join := linkOf(id); join != "" && !strings.EqualFold(id, r.URL.Path) && !a.allowed(join) {
			refuse(w, http.StatusForbidden, "LinkedAuthorizationFailed", fmt.Sprintf(
				"The client has permission to perform action '%s' on scope '%s'; however, it does not have permission to "+
					"perform action(s) '%s' on the linked scope(s) '%s'.", action, r.URL.Path, join, id))
			return false
		}
	}
	return true
}

// linkOf is the action that whoever names an ID needs on it, if any.
func linkOf(id string) string {
	for kind, ending := range linked {
		if strings.EqualFold(kind, kindOf(id)) {
			return kind + ending
		}
	}
	return ""
}

// kindOf is the type of what an ID is about.
func kindOf(id string) string {
	parts := append([]string{"Microsoft.Resources"}, strings.Split(strings.Trim(id, "/"), "/")...)
	if at := slices.Index(parts, "providers"); at >= 0 {
		parts = parts[at+1:]
	}
	kind := parts[0]
	for n := 1; n < len(parts); n += 2 {
		kind += "/" + parts[n]
	}
	return kind
}

// named returns the IDs in a body. Those of identities are names of fields.
func named(body any) (ids []string) {
	switch body := body.(type) {
	case string:
		if strings.HasPrefix(body, "/subscriptions/") {
			ids = []string{body}
		}
	case []any:
		for _, inner := range body {
			ids = append(ids, named(inner)...)
		}
	case object:
		for name, inner := range body {
			ids = append(append(ids, named(name)...), named(inner)...)
		}
	}
	return ids
}
