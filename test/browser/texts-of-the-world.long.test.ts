import { expect, it } from 'vitest'
import { corpus, pasted, phones, stored } from '../support/texts-of-the-world.ts'
import { until } from '../support/until.ts'
import { field, online, useFeatures } from './widget-feature-page.ts'

const features = useFeatures()

/** A field of one line refuses tabs, and keeps no spaces at its ends. */
const line = corpus.map((each) => each.trim().replace('\t', ' ')).join(' ')
/** Messages have no line ends and spaces at their ends. */
const text = stored.trim()

it('what a visitor and an operator type arrives as it was typed, in each field and each script', async () => {
  const { messaging, leads } = features.operator()
  const { workspaceId, stack } = features.shop()
  const fields = [
    { name: 'name', label: 'Your name', type: 'text', required: true, maxLength: 1000 },
    { name: 'wish', label: 'Your wish', type: 'textarea', required: true, maxLength: 2000 },
    { name: 'phone', label: 'Phone', type: 'tel', required: true },
  ]
  await features.configure({ preChatForm: true }, { preChat: { fields } })
  const { page, conversationId, complaints } = await features.visit()
  const write = async (label: string, written: string) => {
    await page.getByLabel(label).focus()
    await page.keyboard.insertText(written)
  }
  await write('Your name', line)
  await write('Your wish', pasted)
  await write('Phone', phones[0]!)
  await page.getByRole('button', { name: 'Start chat' }).click()
  await online(page)
  const [lead] = await until('the lead', async () => {
    const found = (await leads.listLeads({ workspaceId })).leads.filter(
      (each) => each.conversationId === conversationId,
    )
    return found.length > 0 ? found : undefined
  })
  expect(lead!.fields).toMatchObject({ name: line, phone: '+966501234567' })
  expect(lead!.fields.wish!.trim()).toBe(text)
  await field(page).focus()
  await page.keyboard.insertText(pasted)
  await page.keyboard.press('Enter')
  for (const typed of corpus) {
    await page.keyboard.type(typed)
    await page.keyboard.press('Enter')
  }
  const bodies = async () => (await messaging.listMessages({ conversationId })).messages.map(({ body }) => body)
  await until('the messages', async () => (await bodies()).length === 1 + corpus.length)
  expect((await bodies()).map((body) => body.trim())).toEqual([text, ...corpus.map((each) => each.trim())])

  const desk = await (await features.browser().newContext({ reducedMotion: 'reduce' })).newPage()
  desk.setDefaultTimeout(30_000)
  await desk.goto(`${stack.gateways[0]!.url}/console/`)
  await desk.getByLabel('Or paste a token').fill(stack.demo.workspaceSession)
  await desk.getByLabel('Your name').fill('Ada')
  await desk.getByRole('button', { name: 'Sign in' }).click()
  await desk.goto(`${stack.gateways[0]!.url}/console/conversations/${conversationId}`)
  const enter = async (name: string) => {
    await desk.getByRole('textbox', { name }).focus()
    await desk.keyboard.insertText(pasted)
  }
  await enter('Reply')
  await desk.keyboard.press('Enter')
  await until('the answer', async () => (await bodies()).length === 2 + corpus.length)
  expect((await bodies()).at(-1)!.trim()).toBe(text)
  await desk.getByRole('checkbox', { name: 'Internal note' }).check()
  await enter('Note')
  await desk.keyboard.press('Enter')
  const notes = await until('the note', async () => {
    const found = (await messaging.listNotes({ conversationId })).notes
    return found.length > 0 ? found : undefined
  })
  expect(notes[0]!.body.trim()).toBe(text)
  await desk.goto(`${stack.gateways[0]!.url}/console/replies`)
  await desk.getByRole('textbox', { name: 'Shortcut' }).fill('world')
  await enter('Text')
  await desk.getByRole('button', { name: 'Save reply' }).click()
  const reply = await until('the reply', async () =>
    (await messaging.listSavedReplies({ workspaceId })).replies.find(({ shortcut }) => shortcut === 'world'),
  )
  expect(reply.body.trim()).toBe(text)

  // Both pages show what is stored.
  await desk.goto(`${stack.gateways[0]!.url}/console/conversations/${conversationId}`)
  await desk.locator('.message.agent .bubble').first().waitFor()
  const shown = await desk.locator('.message:not(.note) .bubble').allTextContents()
  expect(shown).toEqual(await bodies())
  await page.getByText('Ada').first().waitFor()
  const inWidget = await page.locator('.list .bubble > div').allTextContents()
  expect(inWidget).toEqual(expect.arrayContaining(await bodies()))
  expect(complaints).toEqual([])
})
