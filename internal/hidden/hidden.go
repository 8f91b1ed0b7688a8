// Package hidden finds what the public types of this module have for its own packages alone, so that their public
// methods are those that users need.
package hidden

// Of returns what x has for the packages of this module as a T, which is an interface: x itself if it is a T, or what
// its method Internal returns. It is nil if x has no such thing. A type that embeds x has the same as x.
func Of[T any](x any) (found T) {
	if t, ok := x.(T); ok {
		return t
	}
	if h, ok := x.(interface{ Internal() any }); ok {
		found, _ = h.Internal().(T)
	}
	return found
}
