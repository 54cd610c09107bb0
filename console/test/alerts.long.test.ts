import { describe, expect, it } from 'vitest'
import { until } from '../../test/support/until.ts'
import { openTabs, toggle } from './alert-tabs.ts'
import { accessibilityFindings, consoleBrowser } from './test-console.ts'

const browser = consoleBrowser()

describe('notifications', () => {
  it('appear once per message in three open tabs, if they are switched on and no tab has the focus', async () => {
    const { core, tabs, shown, focus } = await openTabs(browser, 3)
    const [one, , three] = tabs
    core.conversations.visitorSays('cnv_maria', 'Nobody asked for this alert')
    await one!.getByText('Nobody asked for this alert').waitFor()
    await toggle(one!)
    const button = three!.getByRole('button', { name: 'Notifications and sound', pressed: true })
    await button.waitFor()
    expect(await accessibilityFindings(one!)).toEqual([])

    for (const text of ['First', 'Second', 'Third']) core.conversations.visitorSays('cnv_maria', text)
    for (const tab of tabs) await tab.getByText('Third').first().waitFor()
    await until('a notification of the last message', () => shown.some((text) => text.includes('Third')))
    core.cutStreams()
    core.conversations.visitorSays('cnv_q1z6', 'While the streams were cut')
    for (const tab of tabs) await tab.getByText('While the streams were cut').first().waitFor({ timeout: 20_000 })
    await until('the next notification', () => shown.some((text) => text.includes('were cut')))
    expect(new Set(shown).size).toBe(shown.length)
    expect(shown.join()).not.toContain('Nobody asked')
    expect(shown.at(-1)).toMatch(/^New message from .*: While the streams were cut \(cnv_q1z6\)$/)

    await focus(three!, true)
    const count = shown.length
    core.conversations.visitorSays('cnv_maria', 'You are looking')
    for (const tab of tabs) await tab.getByText('You are looking').first().waitFor()
    await focus(three!, false)
    core.conversations.visitorSays('cnv_maria', 'Nobody is looking')
    await until('the notification', () => shown.length > count)
    expect(shown.slice(count)).toEqual([expect.stringContaining('Nobody is looking')])

    await one!.reload()
    await one!.getByText('Live', { exact: true }).waitFor()
    expect(shown).toHaveLength(count + 1)
  })
})
