// Package llm has the words in which the packages of this module speak of calls to LLM providers: how many tokens and other
// units a call uses, as how many tokens of a quota they count, and what a response says about the provider's limits.
package llm
