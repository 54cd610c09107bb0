import { findLamp } from '../catalogue.ts'
import { type Customer, customers } from '../customers.ts'
import { html } from './html.ts'
import { mark, type Page } from './page.ts'

/** Page with the customer's orders and the accounts to sign in to. */
export function accountPage(customer: Customer | undefined, signsIdentity: boolean): Page {
  if (!customer)
    return {
      title: 'Sign in',
      main: html`
        <h1>Sign in</h1>
        <p class="lead">Three people have an account here. Choose one; no password is needed.</p>
        ${people(customers, 'Sign in as')}
        ${signsIdentity && html`<p class="note">The shop's backend signs a short-lived token that says who you are, and the chat sends it to the service. The agent sees a verified name. The secret stays on the backend.</p>`}`,
    }
  const { name, town, plan, orders } = customer
  const [firstName = ''] = name.split(' ')
  return {
    title: 'Your account',
    main: html`
      <div class="greeting"><h1>Hello, ${firstName}.</h1>
        <form method="post" action="/account/sign-out"><button class="quiet" type="submit">Sign out</button></form></div>
      <p class="lead">${name}, ${town} · ${plan}</p>
      <h2>Your orders</h2>
      ${orders.length === 0 && html`<p class="note">None yet. <a href="/lamps">See the lamps</a></p>`}
      <ul class="orders">${orders.map(
        ({ number, placed, lampId, state }) => html`<li>
          <img src="/art/${lampId}.svg" width="100" height="85" alt="">
          <div><h3>${findLamp(lampId)?.name}</h3><p class="note">${number}, ordered on ${placed}</p><p>${state}</p></div>
          <button class="quiet" type="button" data-ask="About my order ${number}: ">Ask about it</button>
        </li>`,
      )}</ul>
      <h2>Switch account</h2>
      ${people(
        customers.filter(({ id }) => id !== customer.id),
        'Switch to',
      )}
      ${signsIdentity && html`<p class="note">Another person gets another chat. Nothing of ${firstName}’s stays on the screen or in the tab.</p>`}`,
  }
}

function people(accounts: readonly Customer[], verb: string) {
  return html`<ul class="people">${accounts.map(
    (customer) => html`<li><form method="post" action="/account/sign-in">
      <button type="submit" name="customer" value="${customer.id}" data-name="${customer.name}">
        ${mark(customer)} <span><strong>${verb} ${customer.name}</strong><br>${customer.town}</span>
      </button></form></li>`,
  )}</ul>`
}
