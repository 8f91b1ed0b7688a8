// Elements, made without markup: text is set as text, so a name that a client has chosen is never HTML.

// h makes an element. Properties that begin with "on" are listeners; `class`, `text` and attributes are set as they are called.
export function h(tag, properties, ...children) {
  return build(document.createElement(tag), properties, children);
}

// svg makes an element of SVG.
export function svg(tag, properties, ...children) {
  return build(document.createElementNS('http://www.w3.org/2000/svg', tag), properties, children);
}

function build(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'text') element.textContent = value;
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat(2).filter((child) => child !== undefined && child !== null && child !== false));
  return element;
}

// setText changes a text only if it is another, so that nothing is laid out again for nothing.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// setAttribute sets, or with null removes, an attribute, if it is another.
export function setAttribute(node, name, value) {
  if (value === null) {
    if (node.hasAttribute(name)) node.removeAttribute(name);
  } else if (node.getAttribute(name) !== String(value)) {
    node.setAttribute(name, value);
  }
}

// parts returns the elements in a node that have a name, by data-part.
export function parts(node) {
  return Object.fromEntries([...node.querySelectorAll('[data-part]')].map((each) => [each.dataset.part, each]));
}

// clone returns a copy of a template of the page.
export function clone(id) {
  return document.importNode(document.getElementById(id).content.firstElementChild, true);
}

// keyed makes the children of a parent those of a list, and keeps the elements of entries that stay.
export function keyed(parent, list, key, make, fill) {
  const old = new Map([...parent.children].map((child) => [child.key, child]));
  let next = parent.firstElementChild;
  for (const entry of list) {
    const name = key(entry);
    let element = old.get(name);
    if (element) {
      old.delete(name);
    } else {
      element = make(entry);
      element.key = name;
    }
    fill?.(element, entry);
    if (element === next) next = next.nextElementSibling;
    else parent.insertBefore(element, next);
  }
  for (const element of old.values()) element.remove();
}
