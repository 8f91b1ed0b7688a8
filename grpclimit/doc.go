// Package grpclimit is interceptors for gRPC servers: they hold every call to the
// limits of its project.
//
//	limiter := project.New(nil) // 60 requests a minute, 1000 an hour, 10000 a day
//	server := grpc.NewServer(
//		grpc.UnaryInterceptor(grpclimit.UnaryServerInterceptor(limiter)),
//		grpc.StreamInterceptor(grpclimit.StreamServerInterceptor(limiter)),
//	)
//
// A call names its project in the metadata x-project-id; [Identify] takes the name
// from anywhere else. [Cost] charges tokens too, [Wait] lets calls wait in turn,
// [Shadow] only counts, [Skip] lets some pass. A stream is charged once, when it is
// opened.
//
// [LimitUnary] and [LimitStream] are the same without projects, for any
// [limit.Limiter] of calls.
//
// # Answers
//
// What is refused is not handed on, and charges nothing.
//
//	ResourceExhausted  a limit is reached. The details are a QuotaFailure that names the
//	                   limits which deny the call, and a RetryInfo that says when it would
//	                   pass; without one, it costs more than a limit ever lets pass
//	InvalidArgument    the call names no project, or two, or it or its cost is not valid
//	Unavailable        the limits could not be checked: the store that counts is lost
//	Canceled           the client has gone while it waited
package grpclimit
