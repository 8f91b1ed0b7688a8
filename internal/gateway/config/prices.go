package config

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/internal/strictyaml"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
)

// maxPrices is the most prices of a file.
const maxPrices = 10_000

// dollars reads an amount of money, such as 2.50 or 5_000.
func dollars(to *price.Amount, most price.Amount) func(yamlValue) {
	want := fmt.Sprintf("dollars from 0 to %d, such as 2.50, with at most nine digits behind the point", most/price.Dollar)
	return strictyaml.Parsed(to, want, func(text string) (price.Amount, bool) {
		whole, fraction, pointed := strings.Cut(text, ".")
		n, ok := strictyaml.WholeNumber(whole)
		text = strconv.FormatInt(n, 10)
		if pointed {
			text += "." + fraction
		}
		amount, err := price.Parse(text)
		return amount, ok && err == nil && amount <= most && !strings.HasPrefix(whole, "-")
	})
}

// readPrices reads the prices of models, in the order of the file: of several patterns that match a
// model, the first counts.
func (c *Config) readPrices(at yamlValue) {
	var all []price.Override
	at.Entries(func(name string, key, value yamlValue) {
		switch {
		case len(name) > 2*maxName:
			key.Fault("a name of %d bytes: it may have %d", len(name), 2*maxName)
			return
		case len(all) == maxPrices:
			key.Fault("there may be %d prices: a pattern stands for many models", maxPrices)
			return
		}
		for _, earlier := range all {
			if isPattern(name) && isPattern(earlier.Model) && match(earlier.Model, name) && earlier.Price != nil && earlier.Price.Holds(time.Time{}) {
				key.Fault("%s is never reached: it must come before %s", message.Quote(name), message.Quote(earlier.Model))
				return
			}
		}
		o := price.Override{Model: name}
		readOverride(value, &o)
		if !value.Faulty() {
			all = append(all, o)
		}
	})
	c.Prices = c.Prices.With(all...)
}

// readUnpriced reads what models without a price cost.
func (c *Config) readUnpriced(at yamlValue) {
	if _, ok := at.Scalar(); !ok {
		c.Unpriced = readPrice(at)
		return
	}
	word := ""
	strictyaml.OneOf(&word, "deny", "free")(at)
	if word == "free" {
		c.Unpriced = free
	}
}

// endpoint is the form of the names of endpoint_prices.
var endpoint = regexp.MustCompile(`^(\*|[A-Z]+) /[^\s?#]*$`)

// readEndpointPrices reads what requests cost that the gateway forwards without reading them, in the order of the file.
func (p *Upstream) readEndpointPrices(at yamlValue) {
	at.Entries(func(name string, key, value yamlValue) {
		switch {
		case !endpoint.MatchString(name) || len(name) > 2*maxName:
			key.Fault(`%s: it must be a method and a path behind the provider's name, such as "POST /v1/whatever", in which * stands for any characters`, message.Quote(name))
			return
		case len(p.EndpointPrices) == maxPrices:
			key.Fault("there may be %d prices of endpoints: a pattern stands for many", maxPrices)
			return
		}
		e := EndpointPrice{Endpoint: name}
		dollars(&e.Price, price.MaxRate)(value)
		p.EndpointPrices = append(p.EndpointPrices, e)
	})
}

// free is the price of models that cost nothing.
var free = func() *price.Price {
	p, err := price.New(price.Terms{})
	if err != nil {
		panic(err) // no terms are wrong
	}
	return p
}()

// readOverride reads the price of a model, or a list of prices with dates. A price that is no list may have the maxima
// of the model beside it, or these may stand alone.
func readOverride(at yamlValue, to *price.Override) {
	var t price.Terms
	if at.IsList() {
		to.Price = readPrice(at)
		return
	}
	at.Fields(append(termsFields(&t),
		field("context", strictyaml.Count(&to.Context, 1, maxAmount)),
		field("max_output", strictyaml.Count(&to.Output, 1, maxAmount)),
	)...)
	if isMaximaAlone := to.Maxima != (llm.Maxima{}) && t.IsZero(); !isMaximaAlone {
		requirePrices(at, &t)
		to.Price = newPrice(at, t)
	}
}

// readPrice reads a price, or a list of prices with dates, or records a fault and returns nil.
func readPrice(at yamlValue) *price.Price {
	var terms []price.Terms
	if !at.IsList() {
		terms = append(terms, readTerms(at))
	} else {
		at.Items(func(at yamlValue) {
			t := readTerms(at)
			if last := len(terms) - 1; last >= 0 && !t.From.After(terms[last].From) && !at.Faulty() {
				at.At("from").Fault("it must be a date after that of the price before")
			}
			terms = append(terms, t)
		})
	}
	if len(terms) == 0 {
		at.Fault("an empty list: it must have a price")
	}
	return newPrice(at, terms...)
}

// newPrice returns the price of terms that were read, or records a fault and returns nil.
func newPrice(at yamlValue, terms ...price.Terms) *price.Price {
	if at.Faulty() {
		return nil
	}
	p, err := price.New(terms...)
	if err != nil {
		at.Fault("%s", message.Plain(err))
	}
	return p
}

func readTerms(at yamlValue) (t price.Terms) {
	at.Fields(termsFields(&t)...)
	requirePrices(at, &t)
	return t
}

// requirePrices records a fault if terms have no prices: to forget a price must not make a model free.
func requirePrices(at yamlValue, t *price.Terms) {
	if t.Rates == (price.Rates{}) && !at.Faulty() {
		at.Fault("it has no prices: it must have input, output or request; {input: 0} is free")
	}
}

func termsFields(t *price.Terms) []strictyaml.Field {
	return append(rateFields(&t.Rates),
		field("above", readAbove(&t.Above)),
		field("batch", readService(&t.Batch)),
		field("flex", readService(&t.Flex)),
		field("priority", readService(&t.Priority)),
		field("fast", readService(&t.Fast)),
		field("from", readDate(&t.From)),
	)
}

// rateFields returns a field for each price, with its name in JSON.
func rateFields(r *price.Rates) (list []strictyaml.Field) {
	for place, value := range reflect.ValueOf(r).Elem().Fields() {
		name, _, _ := strings.Cut(place.Tag.Get("json"), ",")
		switch to := value.Addr().Interface().(type) {
		case *price.Amount:
			list = append(list, field(name, dollars(to, price.MaxRate)))
		case *price.Rate:
			list = append(list, field(name, readRate(to, name)))
		}
	}
	return list
}

// readRate reads the price with a name.
func readRate(to *price.Rate, name string) func(yamlValue) {
	most := price.Amount(price.MaxRate)
	if slices.Contains(price.UnitNames(), name) {
		most = price.MaxUnitRate
	}
	return func(at yamlValue) {
		amount := price.Amount(-1)
		dollars(&amount, most)(at)
		if amount >= 0 {
			*to = price.RateOf(amount)
		}
	}
}

// readAbove reads the prices above a prompt's size: a mapping, or a list of them.
func readAbove(to *[]price.Above) func(yamlValue) {
	read := func(at yamlValue) {
		var a price.Above
		at.Fields(append(rateFields(&a.Rates), field("tokens", strictyaml.Count(&a.Tokens, 1, maxAmount)))...)
		switch last := len(*to) - 1; {
		case at.Faulty():
		case a.Tokens == 0:
			at.Fault("tokens is missing: it must be the size of a prompt, such as 200_000")
		case a.Rates == price.Rates{}:
			at.Fault("it has no prices: it must have input or output")
		case last >= 0 && a.Tokens <= (*to)[last].Tokens:
			at.At("tokens").Fault("%d: it must be more than in the item before", a.Tokens)
		}
		*to = append(*to, a)
	}
	return func(at yamlValue) {
		if at.IsList() {
			at.Items(read)
		} else {
			read(at)
		}
	}
}

// readService reads the prices of a service tier: a percentage of the usual prices, or a mapping.
func readService(to *price.Service) func(yamlValue) {
	want := fmt.Sprintf("a percentage of the usual prices from 1%% to %d%%, such as 50%%, or prices", price.MaxPercent)
	return func(at yamlValue) {
		if _, isText := at.Scalar(); isText {
			strictyaml.Parsed(&to.Percent, want, func(text string) (int, bool) {
				text, ok := strings.CutSuffix(text, "%")
				n, isNumber := strictyaml.WholeNumber(text)
				return int(n), ok && isNumber && 1 <= n && n <= price.MaxPercent
			})(at)
			return
		}
		at.Fields(append(rateFields(&to.Rates), field("above", readAbove(&to.Above)))...)
		if to.IsZero() && !at.Faulty() {
			at.Fault("it has no prices: it must be %s", want)
		}
	}
}

// readDate reads the day on which a price begins, at midnight UTC.
func readDate(to *time.Time) func(yamlValue) {
	return strictyaml.Parsed(to, "a date such as 2026-03-13", func(text string) (time.Time, bool) {
		day, err := time.Parse(time.DateOnly, text)
		return day, err == nil && day.Year() > 0
	})
}

// kinds returns what the names of providers stand for.
func (c *Config) kinds() map[string]llm.Provider {
	all := map[string]llm.Provider{}
	for name, p := range c.Providers {
		all[name] = p.Kind
	}
	return all
}
