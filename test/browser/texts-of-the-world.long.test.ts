import { afterAll, expect, it } from 'vitest'
import { howToInstall, otherBrowsers } from '../support/other-browsers.ts'
import { corpus, pasted, phones, stored } from '../support/texts-of-the-world.ts'
import { until } from '../support/until.ts'
import { useFeatures } from './widget-feature-page.ts'

const features = useFeatures()
const firefox = await otherBrowsers.Firefox!()
afterAll(() => firefox?.close())

/** A browser with one page. */
interface WritingBrowser {
  goto(url: string): Promise<unknown>
  evaluate<T>(expression: string): Promise<T>
  /** Inserts a text at the caret of the focused field, as an input method does. */
  insert(text: string): Promise<unknown>
}

/** A field of one line refuses tabs, and keeps no spaces at its ends. */
const line = corpus.map((each) => each.trim().replace('\t', ' ')).join(' ')
/** Messages have no line ends and spaces at their ends. */
const text = stored.trim()

/** Finds what a person sees in a root by its name. */
function viewOf(browser: WritingBrowser, root: string) {
  const found = (name: string) =>
    `[...${root}?.querySelectorAll('input, textarea, button') ?? []].find((each) =>
      [each.ariaLabel, each.textContent, ...[...each.labels ?? []].map((label) => label.textContent)]
        .some((text) => text?.trim().startsWith(${JSON.stringify(name)})) && each.checkVisibility())`
  const shown = (name: string) => until(name, () => browser.evaluate<boolean>(`Boolean(${found(name)})`))
  return {
    async click(name: string) {
      await shown(name)
      await browser.evaluate(`void ${found(name)}.click()`)
    },
    async write(name: string, written: string) {
      await shown(name)
      await browser.evaluate(`void ${found(name)}.focus()`)
      await browser.insert(written)
    },
    async send(name: string, written: string) {
      await this.write(name, written)
      const key = `new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true, composed: true })`
      await browser.evaluate(`void ${found(name)}.dispatchEvent(${key})`)
      await until('the empty field', () => browser.evaluate<boolean>(`${found(name)}?.value === ''`))
    },
    texts: (selector: string) =>
      browser.evaluate<string[]>(
        `[...${root}?.querySelectorAll('${selector}') ?? []].map(({ textContent }) => textContent)`,
      ),
  }
}

async function writeEverywhere(browser: WritingBrowser, shortcut: string) {
  const { messaging, leads } = features.operator()
  const { origin, siteKey, workspaceId, stack } = features.shop()
  const fields = [
    { name: 'name', label: 'Your name', type: 'text', required: true, maxLength: 1000 },
    { name: 'wish', label: 'Your wish', type: 'textarea', required: true, maxLength: 2000 },
    { name: 'phone', label: 'Phone', type: 'tel', required: true },
  ]
  await features.configure({ preChatForm: true }, { preChat: { fields } })
  const widget = viewOf(browser, `document.querySelector('[data-service-widget]')?.shadowRoot`)
  await browser.goto(origin)
  await widget.click('Open chat')
  await widget.write('Your name', line)
  await widget.write('Your wish', pasted)
  await widget.write('Phone', phones[0]!)
  await widget.click('Start chat')
  const conversationId = await until('the session', () =>
    browser.evaluate<string>(
      `JSON.parse(sessionStorage.getItem('service.widget.1.${siteKey}'))?.session?.conversationId`,
    ),
  )
  const lead = await until('the lead', async () =>
    (await leads.listLeads({ workspaceId })).leads.find((each) => each.conversationId === conversationId),
  )
  expect(lead.fields).toMatchObject({ name: line, phone: '+966501234567' })
  expect(lead.fields.wish!.trim()).toBe(text)
  for (const each of [pasted, ...corpus]) await widget.send('Your message', each)
  const bodies = async () => (await messaging.listMessages({ conversationId })).messages.map(({ body }) => body)
  await until('the messages', async () => (await bodies()).length === 1 + corpus.length)
  expect((await bodies()).map((body) => body.trim())).toEqual([text, ...corpus.map((each) => each.trim())])

  const desk = viewOf(browser, 'document')
  const consoleUrl = `${stack.gateways[0]!.url}/console`
  await browser.goto(`${consoleUrl}/`)
  await desk.write('Or paste a token', stack.demo.workspaceSession)
  await desk.write('Your name', 'Ada')
  await desk.click('Sign in')
  await until('the inbox', () => browser.evaluate<boolean>(`Boolean(document.querySelector('nav'))`))
  await browser.goto(`${consoleUrl}/conversations/${conversationId}`)
  await desk.send('Reply', pasted)
  await until('the answer', async () => (await bodies()).length === 2 + corpus.length)
  expect((await bodies()).at(-1)!.trim()).toBe(text)
  await desk.click('Internal note')
  await desk.send('Note', pasted)
  const note = await until('the note', async () => (await messaging.listNotes({ conversationId })).notes[0])
  expect(note.body.trim()).toBe(text)
  await browser.goto(`${consoleUrl}/replies`)
  await desk.write('Shortcut', shortcut)
  await desk.write('Text', pasted)
  await desk.click('Save reply')
  const reply = await until('the reply', async () =>
    (await messaging.listSavedReplies({ workspaceId })).replies.find((each) => each.shortcut === shortcut),
  )
  expect(reply.body.trim()).toBe(text)

  // Both pages show what is stored.
  await browser.goto(`${consoleUrl}/conversations/${conversationId}`)
  await until('the answer', async () => (await desk.texts('.message.agent .bubble')).length > 0)
  expect(await desk.texts('.message:not(.note) .bubble')).toEqual(await bodies())
  await browser.goto(origin)
  await until('the answer', async () => (await widget.texts('.bubble > div')).includes((await bodies()).at(-1)!))
  expect(await widget.texts('.list .bubble > div')).toEqual(expect.arrayContaining(await bodies()))
}

it('in Chromium, what a visitor and an operator write arrives as it is, in each field and each script', async () => {
  const page = await (await features.browser().newContext({ reducedMotion: 'reduce' })).newPage()
  const complaints: string[] = []
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(String(error)))
  await writeEverywhere(
    {
      goto: (url) => page.goto(url),
      evaluate: (expression) => page.evaluate(expression),
      insert: (written) => page.keyboard.insertText(written),
    },
    'chromium',
  )
  expect(complaints).toEqual([])
})

it.skipIf(!firefox)(`in Firefox, what they write arrives as it is (${howToInstall})`, async () => {
  const { goto, evaluate } = firefox!
  const insert = (written: string) =>
    evaluate(`void document.execCommand('insertText', false, ${JSON.stringify(written)})`)
  await writeEverywhere({ goto, evaluate, insert }, 'firefox')
})
