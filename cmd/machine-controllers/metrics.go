package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"

	"github.com/machine-iac/machine-iac-operator/internal/selfsigned"
)

// controllerPorts are the ports of machine-api-operator's proxies, one for each of its controllers,
// with the series there. Monitors of OpenShift scrape all of them, so that no series is on two.
var controllerPorts = map[int]func(series string) bool{
	8441: func(series string) bool { return !ofMachineSets(series) && !ofHealthChecks(series) },
	8442: ofMachineSets,
	8444: ofHealthChecks,
}

func ofMachineSets(series string) bool {
	return strings.HasPrefix(series, "mapi_machineset_") || strings.HasPrefix(series, "mapi_machine_set_")
}

func ofHealthChecks(series string) bool { return strings.HasPrefix(series, "mapi_machinehealthcheck_") }

// addControllerPorts serves the metrics on controllerPorts, too, with the same certificate and to
// the same callers. listen is [net.Listen].
func addControllerPorts(mgr manager.Manager, h hooks, o options,
	listen func(network, address string) (net.Listener, error)) error {
	if !o.controllerPorts {
		return nil
	}
	guard, err := filters.WithAuthenticationAndAuthorization(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("creating the authorization of the metrics: %w", err)
	}
	config := &tls.Config{NextProtos: []string{"h2", "http/1.1"}}
	o.tls(config)
	h.metricsTLS(config)
	if o.metricsCertDir != "" || config.GetCertificate == nil {
		config.GetCertificate = selfsigned.Unless(selfsigned.FromFolder(o.metricsCertDir))
	}
	for port, has := range controllerPorts {
		series := promhttp.HandlerFor(only(metrics.Registry, has), promhttp.HandlerOpts{})
		handler, err := guard(ctrl.Log.WithName("metrics"), series)
		if err != nil {
			return fmt.Errorf("creating the handler of the metrics: %w", err)
		}
		listener, err := listen("tcp", ":"+strconv.Itoa(port))
		if err != nil {
			return fmt.Errorf("listening for --metrics-controller-ports: %w", err)
		}
		if err := addControllerPort(mgr, handler, tls.NewListener(listener, config)); err != nil {
			return err
		}
	}
	return nil
}

func addControllerPort(mgr manager.Manager, handler http.Handler, listener net.Listener) error {
	mux := http.NewServeMux()
	mux.Handle("/metrics", handler)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 30 * time.Second}
	if err := mgr.Add(&manager.Server{Name: "metrics", Server: server, Listener: listener}); err != nil {
		return fmt.Errorf("adding the server of the metrics: %w", err)
	}
	return nil
}

// only leaves out the series that are not on a port.
func only(all prometheus.Gatherer, has func(series string) bool) prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families, err := all.Gather()
		return slices.DeleteFunc(families, func(one *dto.MetricFamily) bool { return !has(one.GetName()) }), err
	})
}
