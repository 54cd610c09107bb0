import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterEach, beforeAll, expect } from 'vitest'
import { runAdmin } from '../../admin/run-admin.ts'
import { buildConsoleIfStale } from '../../console/build.ts'
import { sharedChromium } from '../support/chromium.ts'
import { useLocalStack } from '../support/local-stack.ts'
import { pageSizes } from '../support/page-checks.ts'

/** Starts two cores and two gateways, and opens the browsers of persons, each with an authenticator. */
export function useLiveTeam() {
  const contexts: BrowserContext[] = []
  let browser: Browser

  beforeAll(buildConsoleIfStale)
  const stack = useLocalStack({ cores: 2, gateways: 2, env: { RATE_LIMIT_FACTOR: '100' } })
  beforeAll(async () => {
    browser = await sharedChromium()
  })
  afterEach(async () => {
    for (const context of contexts.splice(0)) await context.close()
  })

  /** The origin of a gateway by name, because passkeys do not work for an IP address. */
  const url = (gateway = 0) => stack.gateways[gateway]!.url.replace('127.0.0.1', 'localhost')

  return {
    url,

    /** Lets a new visitor write. */
    visitorSays: async (body: string) => (await stack.newVisitor()).send(body),

    /** Opens a page with an authenticator of its own, which answers without a person. */
    async newPerson() {
      const context = await browser.newContext({ reducedMotion: 'reduce', viewport: pageSizes.desktop })
      contexts.push(context)
      const page = await context.newPage()
      page.setDefaultTimeout(20_000)
      const cdp = await context.newCDPSession(page)
      await cdp.send('WebAuthn.enable')
      await cdp.send('WebAuthn.addVirtualAuthenticator', {
        options: {
          protocol: 'ctap2',
          transport: 'internal',
          hasResidentKey: true,
          hasUserVerification: true,
          isUserVerified: true,
          automaticPresenceSimulation: true,
        },
      })
      return page
    },

    /** Returns a link of the shell that signs in the first owner. */
    async ownerLink(gateway = url()): Promise<string> {
      const output: string[] = []
      const args = ['console-link', '--owner', '--workspace', 'ws_demo', '--gateway', gateway, '--json']
      const io = { env: { DATA_DIR: stack.dataDir, CORE_URL: stack.cores[0]!.url }, printError: console.error }
      expect(await runAdmin({ ...io, args, print: (text) => void output.push(text) })).toBe(0)
      return JSON.parse(output.join('')).link
    },
  }
}

export const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })

/** Opens a link and signs in. The name is for an account that does not exist yet. */
export async function enter(page: Page, link: string, name: string) {
  await page.goto(link)
  const isKnown = page.getByText('This link signs you in')
  const isNew = page.getByRole('heading', { name: /^Welcome to/ })
  await isKnown.or(isNew).waitFor()
  if (await isNew.isVisible()) await page.getByLabel('Your name').fill(name)
  await button(page, 'Sign in').click()
  await page.getByRole('navigation', { name: 'Console' }).waitFor()
}

export async function openTeam(page: Page) {
  await page.getByRole('link', { name: 'Team' }).click()
  await page.getByRole('heading', { name: 'Team', exact: true }).waitFor()
}

/** Creates an invitation on the page Team, and returns its link. */
export async function invite(page: Page, role: string): Promise<string> {
  const card = page.getByRole('region', { name: 'Invite a colleague' })
  await card.getByLabel('Role').selectOption({ label: role })
  await button(page, 'Create invitation').click()
  return card.getByLabel('Link to copy').inputValue()
}
