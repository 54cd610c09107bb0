import { lampOf } from '../catalogue.ts'
import { type Customer, customers } from '../customers.ts'
import { html } from './html.ts'
import { initialsOf, type Page } from './layout.ts'

/** Who is signed in, and who could be. `signs`: whether the chat is told of it. */
export function accountPage(customer: Customer | undefined, signs: boolean): Page {
  return customer ? ownPage(customer, signs) : { title: 'Sign in', main: signInMain(signs) }
}

function signInMain(signs: boolean) {
  return html`
    <h1>Sign in</h1>
    <p class="lead">Three people have an account here. Be one of them: nobody needs a password.</p>
    ${people(customers, 'Sign in as')}
    ${signs && html`<p class="note">The shop's backend then signs a short-lived token that says who you are, and the chat hands it on. The agent sees a verified name; the browser never sees the secret.</p>`}`
}

function ownPage(customer: Customer, signs: boolean): Page {
  const others = customers.filter(({ id }) => id !== customer.id)
  return {
    title: 'Your account',
    main: html`
      <div class="greeted"><h1>Hello, ${customer.name.split(' ')[0]!}.</h1>
        <form method="post" action="/account/sign-out"><button class="quiet" type="submit">Sign out</button></form></div>
      <p class="lead">${customer.name}, ${customer.town} · ${customer.plan}</p>
      <h2>Your orders</h2>
      ${orders(customer)}
      <h2>Or be somebody else</h2>
      ${people(others, 'Switch to')}
      ${signs && html`<p class="note">Another person gets another chat: nothing of ${customer.name.split(' ')[0]!}'s is left on the screen or in the tab.</p>`}`,
  }
}

function orders({ orders }: Customer) {
  if (orders.length === 0) return html`<p>None yet. <a href="/lamps">See the lamps</a></p>`
  return html`<ul class="orders">${orders.map(
    ({ number, placed, lampId, state }) => html`<li>
      <img src="/art/${lampId}.svg" width="100" height="85" alt="">
      <div><h3>${lampOf(lampId)?.name}</h3><p>${number}, ordered on ${placed}</p><p class="state">${state}</p></div>
      <button class="quiet" type="button" data-ask="About my order ${number}: ">Ask about it</button>
    </li>`,
  )}</ul>`
}

function people(some: readonly Customer[], verb: string) {
  return html`<ul class="people">${some.map(
    ({ id, name, town, orders }) => html`<li><form method="post" action="/account/sign-in">
      <button type="submit" name="customer" value="${id}" data-name="${name}">
        <span class="mark" aria-hidden="true">${initialsOf(name)}</span>
        <span><strong>${verb} ${name}</strong><span>${town}, ${orders.length === 0 ? 'no order yet' : orders.length === 1 ? '1 order' : `${orders.length} orders`}</span></span>
      </button></form></li>`,
  )}</ul>`
}
