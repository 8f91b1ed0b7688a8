// A list of any length, of which only the rows in view exist.

const overscan = 6; // rows beyond each edge of the view

// List shows rows of equal heights. Its page scrolls, not the list itself. `--row-height` of its style is the height of a row.
class List extends HTMLElement {
  #source = {count: 0, at: () => null};
  #make = null;
  #fill = null;
  #shown = new Map(); // elements by the index of their row
  #spare = [];
  #frame = 0;
  #height = 0;
  #scrolled = () => this.draw();
  #resized = new ResizeObserver(() => this.#measure());

  connectedCallback() {
    addEventListener('scroll', this.#scrolled, {passive: true});
    addEventListener('resize', this.#scrolled, {passive: true});
    this.#resized.observe(this);
  }

  disconnectedCallback() {
    removeEventListener('scroll', this.#scrolled);
    removeEventListener('resize', this.#scrolled);
    this.#resized.disconnect();
    cancelAnimationFrame(this.#frame);
  }

  // use sets how rows are made and filled.
  use(make, fill) {
    this.#make = make;
    this.#fill = fill;
  }

  // show shows a source: how many rows there are, and the value of each, or null while it is not known.
  show(source) {
    this.#source = source;
    this.#measure();
  }

  // range returns the indexes of the rows in view, and a few beyond.
  range() {
    const height = this.#height || 1;
    const top = -this.getBoundingClientRect().top;
    const first = Math.floor(top / height) - overscan;
    const last = Math.ceil((top + innerHeight) / height) + overscan;
    return [Math.max(0, first), Math.min(this.#source.count, Math.max(0, last))];
  }

  #measure() {
    this.#height = parseFloat(getComputedStyle(this).getPropertyValue('--row-height')) || 60;
    this.style.setProperty('--rows', this.#source.count);
    this.#place();
  }

  // draw shows the rows that are in view now, in the next frame.
  draw() {
    this.#frame ||= requestAnimationFrame(() => this.#place());
  }

  #place() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    const [first, last] = this.range();
    for (const [index, element] of this.#shown) {
      if (index >= first && index < last) continue;
      this.#shown.delete(index);
      this.#spare.push(element);
    }
    for (let index = last - 1; index >= first; index--) this.#row(index); // from the end, so that each finds the one it stands before
    for (const element of this.#spare.splice(0)) {
      if (element.contains(document.activeElement)) this.#keepFocus();
      element.remove();
    }
    this.dispatchEvent(new Event('range'));
  }

  #row(index) {
    let element = this.#shown.get(index);
    if (!element) {
      element = this.#spare.pop() ?? this.#make();
      this.#shown.set(index, element);
      element.setAttribute('aria-rowindex', index + 2); // the head is the first
      element.style.setProperty('--index', index);
      this.insertBefore(element, this.#shown.get(index + 1) ?? null); // in order, for the keyboard and for screen readers
    }
    this.#fill(element, this.#source.at(index), index);
  }

  // keepFocus gives the list the focus of a row that leaves the view, so that the keyboard goes on from here.
  #keepFocus() {
    this.tabIndex = -1;
    this.focus({preventScroll: true});
  }
}

customElements.define('rl-list', List);
