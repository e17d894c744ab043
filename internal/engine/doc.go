// Package engine has the types in which engines report what they do, so that whoever starts one need not know which it is: the [Report] of
// an operation, the [Event]s while it goes on, and the [Error] of one that failed, with its [Class].
//
// Packages that drive an engine put what theirs says into these words, free of what must not show (a [Redactor] sees to that).
package engine
