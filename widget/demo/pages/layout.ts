import type { Customer } from '../customers.ts'
import { type Html, html } from './html.ts'

/** What a page's scripts are told. No secret is among it. */
export interface PageFacts {
  siteKey: string
  gatewayUrl: string
  /** How to answer as an agent, where the shop was told. */
  agentCommand?: string
  /** Whether the shop's backend can sign who is logged in. */
  signsIdentity: boolean
}

/** What every page is drawn from. */
export interface View {
  facts: PageFacts
  customer: Customer | undefined
  /** Pieces in the basket. */
  pieces: number
  path: string
}

export interface Page {
  title: string
  main: Html
  /** 200 if left out. */
  status?: number
}

const places = [
  ['/lamps', 'Lamps'],
  ['/help', 'Help'],
] as const

/** The whole document around a page. */
export function layOut({ title, main }: Page, { facts, customer, pieces, path }: View): string {
  const told = JSON.stringify({
    ...facts,
    ...(customer && { customer: { externalSubject: customer.id, displayName: customer.name } }),
  })
  const isAt = (place: string) => path === place || path.startsWith(`${place}/`)
  return html`<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover">
    <meta name="color-scheme" content="light dark">
    <meta name="shop-facts" content="${told}">
    <title>${title} · Nordlicht</title>
    <meta name="description" content="Handmade table, pendant and floor lamps from a small workshop by the sea.">
    <link rel="icon" href="/favicon.svg" type="image/svg+xml">
    <link rel="stylesheet" href="/shop.css">
    <link rel="stylesheet" href="/workbench.css">
    <script type="module" src="/scripts/main.js"></script>
    <script src="/widget.js" data-site-key="${facts.siteKey}" data-api-base-url="${facts.gatewayUrl}" defer></script>
  </head>
  <body>
    <a class="skip" href="#main">Skip to the content</a>
    <header class="top">
      <a class="brand" href="/"><img src="/favicon.svg" alt="" width="34" height="34">Nordlicht</a>
      <nav aria-label="Shop">
        ${places.map(([place, name]) => link(place, name, isAt(place)))}
      </nav>
      <div class="own">
        <a class="person" href="/account"${current(isAt('/account'))}>${customer ? [html`<span class="mark" aria-hidden="true">${initialsOf(customer.name)}</span>`, customer.name.split(' ')[0]!] : 'Sign in'}</a>
        <a class="to-basket" href="/basket"${current(isAt('/basket'))}>Basket <span class="count">${pieces}</span></a>
      </div>
    </header>
    <main id="main" tabindex="-1">${main}</main>
    <footer>
      <p>Nordlicht is a demonstration: nothing here is for sale, and nobody lives at the addresses.</p>
      <p>The chat in the corner is real. <button class="link" type="button" data-open-workbench="try" hidden>See how it is done</button></p>
    </footer>
  </body>
</html>
`.markup
}

const current = (isCurrent: boolean) => (isCurrent ? html` aria-current="page"` : undefined)

const link = (place: string, name: string, isCurrent: boolean) =>
  html`<a href="${place}"${current(isCurrent)}>${name}</a>`

export const initialsOf = (name: string): string =>
  name
    .split(' ')
    .map((part) => part[0] ?? '')
    .join('')
    .slice(0, 2)
