// Package grpclimit has interceptors for gRPC servers: they let only the calls pass that the
// limits of their projects allow.
//
//	limiter := project.New(nil) // 60 requests a minute, 1000 an hour, 10000 a day
//	server := grpc.NewServer(
//		grpc.UnaryInterceptor(grpclimit.UnaryServerInterceptor(limiter)),
//		grpc.StreamInterceptor(grpclimit.StreamServerInterceptor(limiter)),
//	)
//
// A call names its project in the metadata x-project-id; [Identify] takes the name from
// elsewhere. [Cost] charges tokens, too, [Wait] lets calls wait for their turn, [Shadow] only
// counts, and [Skip] lets some calls pass. A stream is charged once, when it is opened.
//
// [LimitUnary] and [LimitStream] are the same without projects, for any
// [limit.Limiter] of calls.
//
// # Answers
//
// A call that does not pass does not reach the handler, and is charged nothing. The client
// gets:
//
//	ResourceExhausted  a limit is reached. The details are a QuotaFailure with the limits that
//	                   deny the call, and a RetryInfo with when the call would pass. A call
//	                   that costs more than a limit gets no RetryInfo
//	InvalidArgument    the call names no project, or two, or its project or cost is not valid
//	Unavailable        the limits could not be checked: the store that counts is lost
//	Canceled           the client has left while its call waited
package grpclimit
