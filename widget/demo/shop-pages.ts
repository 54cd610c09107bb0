import { isLampKind, lampOf } from './catalogue.ts'
import { accountPage } from './pages/account.ts'
import { basketPage, checkoutPage, thanksPage } from './pages/basket.ts'
import { homePage, lampPage, lampsPage } from './pages/catalogue.ts'
import { helpPage, missingPage } from './pages/help.ts'
import { layOut, type Page, type PageFacts } from './pages/layout.ts'
import { piecesIn, type ShopSession, signedIn } from './shop-sessions.ts'

/** The document at an address of the shop, as the session's browser sees it. */
export function renderShop(url: URL, session: ShopSession | undefined, facts: PageFacts) {
  const page = pageAt(url, session, facts) ?? missingPage()
  const view = { facts, customer: signedIn(session), pieces: piecesIn(session), path: url.pathname }
  return { status: page.status ?? 200, document: layOut(page, view) }
}

function pageAt(url: URL, session: ShopSession | undefined, facts: PageFacts): Page | undefined {
  const [place = '', detail, ...more] = url.pathname.slice(1).split('/')
  if (more.length > 0) return undefined
  if (place === 'lamps' && (detail === undefined || isLampKind(detail))) return lampsPage(detail)
  if (place === 'lamp') {
    const lamp = lampOf(detail ?? '')
    return lamp && lampPage(lamp, url.searchParams.has('added'))
  }
  if (detail !== undefined) return undefined
  if (place === '') return homePage()
  if (place === 'basket') return basketPage(session)
  if (place === 'checkout') return checkoutPage(session, signedIn(session))
  if (place === 'thanks') return session?.lastOrder === undefined ? undefined : thanksPage(session.lastOrder)
  if (place === 'help') return helpPage()
  if (place === 'account') return accountPage(signedIn(session), facts.signsIdentity)
  return undefined
}
