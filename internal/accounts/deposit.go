package accounts

import (
	"encoding/json"
	"errors"
	"fmt"

	"dappco.re/go/core/go-ratelimit/limit"
)

// Deposit is a take that is written down, so that another process can settle it. It has what settling
// takes from windows and sliding logs needs; a bucket is refunded nothing by it.
type Deposit struct {
	Charges []Deposited `json:"charges"`
	Note    []byte      `json:"note"` // of the depositor
}

// Deposited is one charge of a deposit.
type Deposited struct {
	Key    string   `json:"key"`
	Limits [][]byte `json:"limits"` // in their binary form
	N      int64    `json:"n"`
	At     int64    `json:"at"` // Unix nanoseconds
	Epoch  uint64   `json:"epoch"`
}

// ErrDeposit is the error for bytes that are not the form of a [Deposit].
var ErrDeposit = errors.New("ratelimit: corrupt deposit")

// Add adds a charge, with the receipt of its take.
func (d *Deposit) Add(key string, limits []limit.Limit, r limit.Receipt) {
	forms := make([][]byte, len(limits))
	for i, l := range limits {
		forms[i], _ = l.AppendBinary(nil)
	}
	d.Charges = append(d.Charges, Deposited{Key: key, Limits: forms, N: r.N, At: r.At, Epoch: r.Epoch})
}

// Encode returns the deposit as bytes.
func (d *Deposit) Encode() []byte {
	form, _ := json.Marshal(d) // it has nothing that could fail
	return form
}

// DecodeDeposit returns the deposit whose bytes Encode has returned. Other bytes give [ErrDeposit].
func DecodeDeposit(form []byte) (*Deposit, error) {
	var d Deposit
	if err := json.Unmarshal(form, &d); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDeposit, err)
	}
	for i := range d.Charges {
		if err := d.Charges[i].check(); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrDeposit, err)
		}
	}
	return &d, nil
}

const (
	maxTime    = 1 << 62
	mostLimits = 64
)

func (c *Deposited) check() error {
	if c.N < 0 || c.At < 0 || c.At > maxTime || len(c.Limits) > mostLimits {
		return errors.New("a number that no take can have")
	}
	_, err := c.Terms()
	return err
}

// Terms returns the limits of the charge.
func (c *Deposited) Terms() ([]limit.Limit, error) {
	limits := make([]limit.Limit, len(c.Limits))
	for i, form := range c.Limits {
		if err := limits[i].UnmarshalBinary(form); err != nil {
			return nil, err
		}
	}
	return limits, nil
}

// Receipt returns the receipt of the charge.
func (c *Deposited) Receipt() limit.Receipt {
	return limit.Receipt{N: c.N, At: c.At, Mark: limit.Mark{Epoch: c.Epoch}}
}
