import { useState } from 'preact/hooks'
import type { GetOwnNotificationsResponse as Own } from '#proto/operator/v1/operator_pb.js'
import { useConsole } from '../console-context.ts'
import { ActionButton } from '../ui/dialog.tsx'
import { Form, numberProblem, SelectField, TextField, Toggle, useForm } from '../ui/form.tsx'
import { useLoad, WhenLoaded } from '../ui/load.tsx'
import { Card, Notice } from '../ui/page.tsx'

const details = [
  ['nothing', 'Nothing'],
  ['name', 'The name of the visitor'],
  ['text', 'The name and the last message'],
] as const

/** What the operator is told by push and mail while not looking at the console. */
export function NotificationsCard() {
  const { api } = useConsole()
  const loaded = useLoad(() => api.operators.getOwnNotifications({}), [])
  return (
    <WhenLoaded loaded={loaded} what="your notifications">
      {(own) => (
        <Card title="Notifications">
          <ThisBrowser own={own} onChange={loaded.reload} />
          <Choices own={own} />
        </Card>
      )}
    </WhenLoaded>
  )
}

function ThisBrowser({ own, onChange }: { own: Own; onChange: () => Promise<void> }) {
  const { api, announcer } = useConsole()
  const [problem, setProblem] = useState<PushProblem>()
  async function change() {
    setProblem(undefined)
    const found = own.pushed ? undefined : await subscribeBrowser(own.publicKey)
    if (typeof found === 'string') return setProblem(found)
    await api.operators.setPushSubscription(found ? { endpoint: found.endpoint!, ...found.keys } : {})
    if (!found) await unsubscribeBrowser()
    announcer.say(found ? 'This browser gets pushes.' : 'This browser gets no more pushes.')
    await onChange()
  }
  return (
    <>
      <p class="hint">
        {own.pushed
          ? 'This browser gets pushes, also while the console is closed, until you sign out.'
          : 'This browser gets no pushes. Turn them on in each browser that you use.'}
      </p>
      <div class="line">
        <ActionButton act={change} text={own.pushed ? 'Turn off pushes here' : 'Turn on pushes here'} />
      </div>
      {problem && <Notice tone="warning">{pushProblems[problem]}</Notice>}
    </>
  )
}

function Choices({ own: { notifications, mail } }: { own: Own }) {
  const { api } = useConsole()
  const { newConversation = false, answerInMine = false, detail = 'nothing' } = notifications ?? {}
  const form = useForm({
    start: {
      newConversation,
      answerInMine,
      detail,
      waitingMinutes: String(notifications?.waitingMinutes ?? 0),
      mailMinutes: String(notifications?.mailMinutes ?? 0),
    },
    problemsOf: ({ waitingMinutes, mailMinutes }) => ({
      waitingMinutes: numberProblem(waitingMinutes, 0, 240, ' minutes'),
      mailMinutes: numberProblem(mailMinutes, 0, 240, ' minutes'),
    }),
    save({ waitingMinutes, mailMinutes, ...draft }) {
      const minutes = { waitingMinutes: Number(waitingMinutes), mailMinutes: Number(mailMinutes) }
      return api.operators.updateOwnNotifications({ notifications: { ...draft, ...minutes } })
    },
    done: 'Your notifications are saved.',
  })
  return (
    <Form form={form} button="Save notifications" disabled={!form.isChanged}>
      <Toggle label="New conversation" hint="Nobody has taken it yet." {...form.toggle('newConversation')} />
      <Toggle label="Answer in a conversation of mine" {...form.toggle('answerInMine')} />
      <TextField
        label="Minutes that a visitor waits"
        hint="You are told when a visitor waits longer. 0 for never."
        inputMode="numeric"
        maxLength={3}
        {...form.field('waitingMinutes')}
      />
      <SelectField
        label="Shown of a conversation"
        hint="In pushes and mails."
        options={details}
        {...form.field('detail')}
      />
      <TextField
        label="Minutes until a mail"
        hint={
          mail
            ? 'If the visitor still waits then, you get one mail. 0 for no mails.'
            : 'Needs a mail server, which this service does not have. 0 for no mails.'
        }
        inputMode="numeric"
        maxLength={3}
        {...form.field('mailMinutes')}
      />
    </Form>
  )
}

type PushProblem = 'unsupported' | 'homeScreen' | 'blocked' | 'failed'

const pushProblems: Record<PushProblem, string> = {
  unsupported: 'This browser gets no pushes here. It needs https, and a window that is not private.',
  homeScreen:
    'Put the console on the home screen first: press Share, then Add to Home Screen. Open it there, and come back to this page.',
  blocked: 'Notifications are blocked. Allow them for this page in the settings of your browser, then try again.',
  failed: 'The browser could not reach its push service. Try again later.',
}

interface Policies {
  createPolicy(name: string, rules: { createScriptURL: () => string }): { createScriptURL(input: string): string }
}

/** A page can create one policy of this name. It returns the URL of the worker only. */
let policy: ReturnType<Policies['createPolicy']> | undefined

function workerUrl() {
  const url = '/console/sw.js'
  const { trustedTypes } = window as { trustedTypes?: Policies }
  policy ??= trustedTypes?.createPolicy('service-worker', { createScriptURL: () => url })
  return policy?.createScriptURL('') ?? url
}

/** Asks the operator for permission, and subscribes this browser. */
async function subscribeBrowser(publicKey: string): Promise<PushSubscriptionJSON | PushProblem> {
  if (!('serviceWorker' in navigator && 'PushManager' in window && 'Notification' in window)) {
    const isTouchMac = navigator.userAgent.includes('Macintosh') && navigator.maxTouchPoints > 1
    return isTouchMac || /iPhone|iPad/.test(navigator.userAgent) ? 'homeScreen' : 'unsupported'
  }
  if ((await Notification.requestPermission()) !== 'granted') return 'blocked'
  try {
    await navigator.serviceWorker.register(workerUrl())
    const { pushManager } = await navigator.serviceWorker.ready
    // A subscription of another operator, or with another key of the service, is replaced.
    await (await pushManager.getSubscription())?.unsubscribe()
    return (await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: publicKey })).toJSON()
  } catch {
    return 'failed'
  }
}

async function unsubscribeBrowser() {
  const registration = await navigator.serviceWorker?.getRegistration('/console/')
  await (await registration?.pushManager.getSubscription())?.unsubscribe()
}
