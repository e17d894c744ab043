package main

import (
	"context"
	"net/http"
	"net/url"
	"reflect"

	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/vapi/rest"
	"github.com/vmware/govmomi/vim25/mo"
)

// sessions returns how many sessions of the SOAP API are open.
func (i *inventory) sessions(ctx context.Context) (int, error) {
	var manager mo.SessionManager
	err := property.DefaultCollector(i.client.Client).RetrieveOne(ctx, i.client.SessionManager.Reference(), []string{"sessionList"}, &manager)
	return len(manager.SessionList), err
}

// restSessions returns how many sessions of the REST API are open. The simulator has them in a map of a type that it does not export.
func restSessions(mux *http.ServeMux) int {
	simulated, _ := mux.Handler(&http.Request{Method: http.MethodGet, URL: &url.URL{Path: rest.Path + "/"}})
	return reflect.ValueOf(simulated).Elem().FieldByName("Session").Len()
}
