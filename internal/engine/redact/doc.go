// Package redact prepares what engines print for people: it removes sensitive strings and cuts texts to size, in this order.
package redact
