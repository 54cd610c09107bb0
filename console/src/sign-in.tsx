import { browserSupportsWebAuthn, startAuthentication } from '@simplewebauthn/browser'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { LinkDescription, ProviderProblem, SessionEnd, SessionHolder } from './session.ts'
import { localStore } from './storages.ts'
import { TextField } from './ui/form.tsx'
import { Button, Icon, Notice } from './ui/page.tsx'

const reasons: Record<SessionEnd, { tone: 'info' | 'warning'; text: string }> = {
  signed_out: { tone: 'info', text: 'You are signed out in all tabs.' },
  expired: { tone: 'warning', text: 'Your session has expired. Sign in again; your drafts are saved.' },
  rejected: { tone: 'warning', text: 'Your session has ended. Sign in again; your drafts are saved.' },
}

const nameKey = 'service.console.name'

interface Problem {
  /** Field with the problem. Undefined for a problem of the link. */
  field?: 'token' | 'name' | 'mail'
  text: string
}

const providerProblems: Record<ProviderProblem, string> = {
  refused: 'The sign-in failed or took too long. Try again.',
  denied: 'Your account has no access to this console. Ask your administrator.',
  unavailable: 'The identity provider cannot be reached. Try again later.',
}

const refusedToken: Problem = {
  field: 'token',
  text: 'This token is not accepted. Copy the whole token. If it has expired, request a new one.',
}
const refusedLink: Problem = { text: 'This link was used or has expired. Choose another way to sign in.' }
const unreachable: Problem = { text: 'The service cannot be reached. Check the connection and try again.' }

/** Signs in with the link that was opened, or else in one of the other ways. */
export function SignIn({ holder }: { holder: SessionHolder }) {
  const form = useRef<HTMLFormElement>(null)
  const [found, setProblem] = useState<Problem>()
  const [isBusy, setBusy] = useState(false)
  const [ways, setWays] = useState({ provider: false, mail: false })
  const [opened, setOpened] = useState<LinkDescription>()
  const [mailed, setMailed] = useState(false)
  const [draft, setDraft] = useState({ token: '', mail: '', name: localStore.getItem(nameKey) ?? '' })
  const { token, mail, name } = draft
  const [workspace, setWorkspace] = useState<string>()
  const link = holder.link.value
  const isLink = Boolean(link)
  const problem = found ?? (link === '' ? refusedLink : undefined)
  const signedIn = holder.current.value
  const ended = holder.ended.value
  const providerProblem = holder.providerProblem.value
  const needsName = !isLink || opened?.name === undefined
  useEffect(() => {
    void holder.calls.options().then((found) => typeof found === 'object' && setWays(found.value))
  }, [])
  useEffect(() => {
    document.title = 'Sign in · Console'
    setProblem(undefined)
    setOpened(undefined)
    form.current!.querySelector<HTMLElement>(link ? '[autocomplete=name]' : '.primary')?.focus()
    if (!link) return
    void holder.calls.describeLink(link).then((found) => {
      if (holder.link.peek() !== link) return
      if (typeof found === 'object') setOpened(found.value)
      else if (found === 'refused') holder.link.value = ''
    })
  }, [link])
  useEffect(() => form.current!.querySelector<HTMLElement>('[aria-invalid=true]')?.focus(), [problem])

  async function submit(event: Event) {
    event.preventDefault()
    if (!isLink && token.trim() === '')
      return setProblem({ field: 'token', text: 'Paste your token, or choose another way to sign in.' })
    const displayName = needsName ? name.trim() : ''
    if (needsName && displayName === '')
      return setProblem({ field: 'name', text: 'Enter the name that visitors will see.' })
    if (needsName) localStore.setItem(nameKey, displayName)
    const workspaceName = opened?.firstOwner && (workspace ?? opened.workspaceName).trim()
    await attempt(async () => {
      const credential = link ? { link } : { token: token.trim() }
      const wrong = await holder.signIn(credential, { displayName, ...(workspaceName && { workspaceName }) })
      if (wrong === 'invalid') return { field: 'name', text: 'Use one line of up to 128 characters.' }
      if (wrong !== 'refused') return wrong && unreachable
      if (!link) return refusedToken
      holder.link.value = ''
    })
  }

  const signInAtProvider = () =>
    attempt(async () => {
      const begun = await holder.calls.beginAtProvider()
      if (typeof begun !== 'object') return { text: providerProblems.unavailable }
      location.assign(begun.value.url)
    })

  const signInWithPasskey = () =>
    attempt(async () => {
      const begun = await holder.calls.beginPasskey()
      if (typeof begun !== 'object') return unreachable
      const optionsJSON = JSON.parse(begun.value.options)
      const response = await startAuthentication({ optionsJSON }).catch(() => undefined)
      if (!response) return { text: 'No passkey was used. Try again, or choose another way.' }
      const wrong = await holder.signInWithPasskey(response)
      if (wrong === 'unreachable') return unreachable
      return wrong && { text: 'This passkey is not accepted. Ask your administrator for a link.' }
    })

  const mailLink = () =>
    attempt(async () => {
      if (!mail.includes('@')) return { field: 'mail', text: 'Enter your mail address.' }
      if (typeof (await holder.calls.mailLink(mail.trim())) !== 'object') return unreachable
      setMailed(true)
    })

  async function attempt(call: () => Promise<Problem | undefined>) {
    setBusy(true)
    setProblem(undefined)
    setProblem(await call())
    setBusy(false)
  }

  const onEnter = (act: (event: Event) => unknown) => (event: KeyboardEvent) => {
    if (event.key !== 'Enter') return
    event.preventDefault()
    void act(event)
  }
  const field = (of: keyof typeof draft) => ({
    value: draft[of],
    error: problem?.field === of ? problem.text : undefined,
    onChange: (value: string) => setDraft((before) => ({ ...before, [of]: value })),
  })
  return (
    <main class="sign-in">
      <form class="card sign-in-card" ref={form} onSubmit={submit} noValidate autocomplete="off">
        <div class="brand">
          <Icon name="inbox" />
        </div>
        <h1>{opened?.invitation ? `Welcome to ${opened.workspaceName}` : 'Sign in to the console'}</h1>
        {opened?.name !== undefined && (
          <p>
            This link signs you in as <strong dir="auto">{opened.name}</strong>
            {` to ${opened.workspaceName}.`}
          </p>
        )}
        {ended && !problem && !isLink && <Notice tone={reasons[ended].tone}>{reasons[ended].text}</Notice>}
        {providerProblem && !problem && !isLink && (
          <Notice tone="danger">{providerProblems[providerProblem] ?? providerProblems.refused}</Notice>
        )}
        {problem && !problem.field && <Notice tone="danger">{problem.text}</Notice>}
        {signedIn && isLink && !problem && (
          <Notice tone="warning">
            You are signed in as {signedIn.displayName}. This link replaces that session in all tabs.
          </Notice>
        )}
        {!isLink && (
          <>
            {browserSupportsWebAuthn() && (
              <Button kind="primary wide" disabled={isBusy} onClick={signInWithPasskey} text="Use a passkey" />
            )}
            {ways.provider && (
              <Button kind="wide" disabled={isBusy} onClick={signInAtProvider} text="Sign in with single sign-on" />
            )}
            {ways.mail && mailed && (
              <Notice tone="success">If an account has this address, a link is on its way. It works once.</Notice>
            )}
            {ways.mail && !mailed && (
              <TextField
                label="Mail address"
                type="email"
                autocomplete="email"
                maxLength={254}
                {...field('mail')}
                onKeyDown={onEnter(mailLink)}
                beside={<Button disabled={isBusy} onClick={mailLink} text="Mail me a link" />}
              />
            )}
            <p class="hint">No way to sign in? Ask your administrator for a link.</p>
            <TextField
              label="Or paste a token"
              hint="For programs and administrators."
              class="input mono secret-input"
              rows={3}
              spellcheck={false}
              autocapitalize="off"
              {...field('token')}
              onKeyDown={onEnter(submit)}
            />
          </>
        )}
        {opened?.firstOwner && (
          <TextField
            label="Name of your workspace"
            hint="For example the name of your shop."
            maxLength={128}
            value={workspace ?? opened.workspaceName}
            onChange={setWorkspace}
          />
        )}
        {needsName && (
          <TextField
            label="Your name"
            hint="Visitors see this name with your replies."
            required
            maxLength={128}
            autocomplete="name"
            {...field('name')}
          />
        )}
        <Button kind={isLink ? 'primary wide' : 'wide'} type="submit" disabled={isBusy} text="Sign in" />
        {signedIn && link !== undefined && (
          <Button kind="wide" onClick={() => (holder.link.value = undefined)}>
            Stay signed in as {signedIn.displayName}
          </Button>
        )}
      </form>
    </main>
  )
}
