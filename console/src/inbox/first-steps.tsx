import type { ComponentChildren } from 'preact'
import { useConsole } from '../console-context.ts'
import { snippetOf } from '../installations/installation-words.ts'
import { pathOf } from '../router.ts'
import { CopyButton } from '../ui/dialog.tsx'
import { useLoad } from '../ui/load.tsx'

const pollMs = 5_000

/** The steps of a new workspace to its first conversation, which takes their place. Each ticks itself. */
export function FirstSteps() {
  const { api, inbox } = useConsole()
  const sites = useLoad(async () => (await api.workspaces.listInstallations({})).installations, [], pollMs).value ?? []
  const [site] = sites
  const snippet = site && snippetOf(location.origin, site.publicSiteKey)
  const steps: [isDone: boolean, text: ComponentChildren][] = [
    [
      sites.length > 0,
      <p>
        <a href={pathOf({ view: 'installations' })}>Add your website</a>
      </p>,
    ],
    [
      inbox.wasVisited.value,
      <>
        Put this line on its pages. Then open a page, and the chat on it.
        {snippet && (
          <>
            <code class="snippet">{snippet}</code>
            <CopyButton text={snippet} />
          </>
        )}
      </>,
    ],
    [false, 'Write a message in the chat. It appears here.'],
  ]
  return (
    <div class="stack first-steps">
      <h2>Three steps to your first conversation</h2>
      <ol class="stack">
        {steps.map(([isDone, text], index) => (
          <li key={index} class={isDone ? 'done' : undefined}>
            <span class={isDone ? 'tag ok' : 'tag'}>{isDone ? 'Done' : index + 1}</span>
            <div class="stack">{text}</div>
          </li>
        ))}
      </ol>
    </div>
  )
}
