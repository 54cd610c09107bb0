import { euros, lampOf } from '../catalogue.ts'
import type { Customer } from '../customers.ts'
import type { ShopSession } from '../shop-sessions.ts'
import { html } from './html.ts'
import type { Page } from './layout.ts'

const freeFrom = 120
const delivery = 9

export function basketPage(session: ShopSession | undefined): Page {
  const rows = rowsOf(session)
  if (rows.length === 0)
    return {
      title: 'Basket',
      main: html`<h1>Your basket is empty</h1><p class="lead">It will not stay that dark.</p><p><a class="button" href="/lamps">See the lamps</a></p>`,
    }
  return {
    title: 'Basket',
    main: html`
      <h1>Basket</h1>
      <ul class="rows">${rows.map(
        ({ lamp, pieces }) => html`<li>
          <img src="/art/${lamp.id}.svg" width="100" height="85" alt="">
          <div><h2><a href="/lamp/${lamp.id}">${lamp.name}</a></h2><p>${lamp.summary}</p></div>
          <form method="post" action="/basket">
            <input type="hidden" name="lamp" value="${lamp.id}">
            <button type="submit" name="pieces" value="${pieces - 1}" aria-label="One ${lamp.name} less">−</button>
            <span>${pieces}</span>
            <button type="submit" name="pieces" value="${pieces + 1}" aria-label="One ${lamp.name} more">+</button>
          </form>
          <p class="price">${euros(pieces * lamp.price)}</p>
        </li>`,
      )}</ul>
      ${sums(session)}
      <p class="way"><a class="button" href="/checkout">To the checkout</a> <button class="quiet" type="button" data-ask="Before I order: ">Ask before ordering</button></p>`,
  }
}

export function checkoutPage(session: ShopSession | undefined, customer: Customer | undefined): Page {
  if (rowsOf(session).length === 0) return basketPage(session)
  const field = (name: string, label: string, value = '', autocomplete = 'off') =>
    html`<label>${label}<input name="${name}" value="${value}" autocomplete="${autocomplete}" required maxlength="80"></label>`
  return {
    title: 'Checkout',
    main: html`
      <h1>Checkout</h1>
      ${!customer && html`<p class="said">Have an account? <a href="/account">Sign in</a>, and we know where to send it.</p>`}
      <form class="checkout" method="post" action="/checkout">
        ${field('name', 'Name', customer?.name, 'name')}
        ${field('town', 'Town', customer?.town, 'address-level2')}
        ${sums(session)}
        <button class="button" type="submit">Order and pay nothing</button>
        <p class="note">A demonstration: no money, no parcel, and what you write here is forgotten at once.</p>
      </form>`,
  }
}

export function thanksPage(order: string): Page {
  return {
    title: 'Thank you',
    main: html`
      <h1>Thank you.</h1>
      <p class="lead">Your order is number <strong>${order}</strong>. If this were a real shop, someone would now switch on the lathe.</p>
      <p class="way"><a class="button" href="/lamps">Back to the lamps</a> <button class="quiet" type="button" data-ask="My order is ${order}. When will it come?">When will it come?</button></p>`,
  }
}

function rowsOf(session: ShopSession | undefined) {
  return [...(session?.basket ?? [])].flatMap(([id, pieces]) => {
    const lamp = lampOf(id)
    return lamp ? [{ lamp, pieces }] : []
  })
}

function sums(session: ShopSession | undefined) {
  const goods = rowsOf(session).reduce((sum, { lamp, pieces }) => sum + pieces * lamp.price, 0)
  const sending = goods >= freeFrom ? 0 : delivery
  return html`<dl class="sums">
    <div><dt>Lamps</dt><dd>${euros(goods)}</dd></div>
    <div><dt>Delivery</dt><dd>${sending === 0 ? 'free' : euros(sending)}</dd></div>
    <div class="total"><dt>Together</dt><dd>${euros(goods + sending)}</dd></div>
  </dl>`
}
