import { findLamp, isLampKind } from '../catalogue.ts'
import type { Customer } from '../customers.ts'
import { accountPage } from './account.ts'
import { html } from './html.ts'
import { homePage, lampPage, lampsPage } from './lamps.ts'
import { mark, type Page, type PageSettings } from './page.ts'
import { workbench } from './workbench.ts'

const missingPage: Page = {
  title: 'Not found',
  main: html`<h1>Page not found</h1><p><a class="button" href="/">Back to the shop</a></p>`,
}

/**
 * Returns the HTML document at a path for the signed-in customer. Undefined if no page has this
 * path.
 */
export function findPage(path: string, customer: Customer | undefined, settings: PageSettings) {
  const page = pageAt(path, customer, settings.signsIdentity)
  return {
    status: page ? 200 : 404,
    type: 'text/html; charset=utf-8',
    content: layOut(page ?? missingPage, path, customer, settings),
  }
}

function pageAt(path: string, customer: Customer | undefined, signsIdentity: boolean): Page | undefined {
  const [place = '', detail, ...more] = path.slice(1).split('/')
  if (more.length > 0) return undefined
  if (place === 'lamps' && (detail === undefined || isLampKind(detail))) return lampsPage(detail)
  if (place === 'lamp') {
    const lamp = findLamp(detail ?? '')
    return lamp && lampPage(lamp)
  }
  if (detail !== undefined) return undefined
  if (place === '') return homePage()
  return place === 'account' ? accountPage(customer, signsIdentity) : undefined
}

function layOut({ title, main }: Page, path: string, customer: Customer | undefined, settings: PageSettings): string {
  const { siteKey, gatewayUrl, signsIdentity } = settings
  const current = (place: string) => path.startsWith(place) && html` aria-current="page"`
  return html`<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover">
    <meta name="color-scheme" content="light dark">
    <title>${title} · Nordlicht</title>
    <meta name="description" content="Handmade table, pendant and floor lamps from a small workshop by the sea.">
    <link rel="icon" href="/favicon.svg" type="image/svg+xml">
    <link rel="stylesheet" href="/base.css">
    <link rel="stylesheet" href="/shop.css">
    <link rel="stylesheet" href="/workbench.css">
    <script type="module" src="/scripts/main.js"></script>
    <script src="/widget.js" data-site-key="${siteKey}" data-api-base-url="${gatewayUrl}" defer></script>
  </head>
  <body data-gateway-url="${gatewayUrl}"${signsIdentity && html` data-signs-identity`}>
    <a class="skip" href="#main">Skip to content</a>
    <header class="top">
      <a class="brand" href="/"><img src="/favicon.svg" alt="" width="34" height="34">Nordlicht</a>
      <nav aria-label="Shop">
        <a href="/lamps"${current('/lamp')}>Lamps</a>
        <a href="/account"${current('/account')}>${customer ? [mark(customer), firstName(customer)] : 'Sign in'}</a>
      </nav>
    </header>
    <main id="main" tabindex="-1">${main}</main>
    <footer>
      <p>Nordlicht is a demonstration. Nothing here is for sale.</p>
      <p>The chat in the corner is real. <button class="link" type="button" data-open-workbench>See how it works</button></p>
    </footer>
    ${workbench(settings)}
  </body>
</html>
`.markup
}

const firstName = ({ name }: Customer): string => name.split(' ')[0]!
