import type { Retention, RetentionPeriod, Workspace } from '#proto/workspace/v1/workspace_pb.js'
import { useConsole } from '../console-context.ts'
import { inSentence } from '../language.ts'
import { areaName, pathOf } from '../router.ts'
import { countOf } from '../time.ts'
import { DeleteCard } from '../ui/dialog.tsx'
import { Form, numberProblem, SelectField, TextField, useForm } from '../ui/form.tsx'
import { useLoad, WhenLoaded } from '../ui/load.tsx'
import { Card, Page } from '../ui/page.tsx'

type RetentionKind = Exclude<keyof Retention, '$typeName' | '$unknown'>

/** The periods of a workspace in the order of the form. */
const retentionKinds: { kind: RetentionKind; label: string; hint: string }[] = [
  {
    kind: 'conversations',
    label: 'Conversations',
    hint: 'After the last message. Messages, sessions and screenshots are removed. Leads stay.',
  },
  { kind: 'leads', label: 'Leads', hint: 'After they were captured. Their deliveries are removed too.' },
  { kind: 'emptySessions', label: 'Sessions without a message', hint: 'After they ended.' },
  { kind: 'audit', label: 'Audit', hint: 'The history of destinations and records of erasures.' },
  { kind: 'heldDeliveries', label: 'Waiting deliveries', hint: 'Deliveries that wait for a destination that is off.' },
]

const maxDays = 3_650

interface PeriodInput {
  choice: 'default' | 'forever' | 'days'
  days: string
}

function inputOf(period: RetentionPeriod | undefined): PeriodInput {
  const days = period?.period.case === 'days' ? String(period.period.value) : '30'
  if (!period || period.isDefault) return { choice: 'default', days }
  return { choice: period.period.case === 'days' ? 'days' : 'forever', days }
}

function defaultText(period: RetentionPeriod | undefined): string {
  if (!period?.isDefault) return 'Default of the service'
  return `Default (${period.period.case === 'days' ? countOf(period.period.value, '# day', '# days') : 'no limit'})`
}

export function WorkspaceView() {
  const { api, holder } = useConsole()
  const loaded = useLoad(async () => (await api.workspaces.getWorkspace({})).workspace!, [])
  return (
    <Page
      title={areaName('workspace')}
      lead={loaded.value && <span class="mono">{loaded.value.workspaceId}</span>}
      actions={
        <a class="button" href={pathOf({ view: 'changes' })}>
          Changes
        </a>
      }
    >
      <WhenLoaded loaded={loaded} what="workspace">
        {(workspace) => (
          <>
            <RetentionCard workspace={workspace} onChanged={loaded.set} />
            <DeleteCard
              what="workspace"
              name={workspace.name}
              explanation="All connections, websites, conversations, leads and destinations of the workspace are removed, and open chats end."
              onDelete={async () => {
                await api.workspaces.deleteWorkspace({ workspaceId: workspace.workspaceId })
                holder.signOut()
              }}
            />
          </>
        )}
      </WhenLoaded>
    </Page>
  )
}

function RetentionCard({ workspace, onChanged }: { workspace: Workspace; onChanged: (workspace: Workspace) => void }) {
  const { api, announcer } = useConsole()
  const stored = workspace.retention
  const form = useForm({
    start: () =>
      Object.fromEntries(retentionKinds.map(({ kind }) => [kind, inputOf(stored?.[kind])])) as Record<
        RetentionKind,
        PeriodInput
      >,
    problemsOf: (inputs) =>
      Object.fromEntries(
        Object.entries(inputs).map(([kind, { choice, days }]) => [
          kind,
          choice === 'days' ? numberProblem(days, 1, maxDays, ' days') : undefined,
        ]),
      ),
    async save(_, edited) {
      const retention = Object.fromEntries(Object.entries(edited).map(([kind, input]) => [kind, periodOf(input)]))
      const answer = await api.workspaces.updateWorkspace({ retention })
      if (answer.workspace) onChanged(answer.workspace)
      announcer.say('Retention saved.')
    },
  })
  const change = (kind: RetentionKind, input: Partial<PeriodInput>) =>
    form.set({ [kind]: { ...form.draft[kind], ...input } })

  return (
    <Card title="Retention">
      <Form form={form} button="Save retention">
        <p class="hint">Data that is older is removed for good, within hours. A shorter period takes effect at once.</p>
        {retentionKinds.map(({ kind, label, hint }) => (
          <div key={kind} class="stack">
            <SelectField
              label={label}
              hint={hint}
              value={form.draft[kind].choice}
              options={[
                ['default', defaultText(stored?.[kind])],
                ['days', 'For a number of days'],
                ['forever', 'No limit'],
              ]}
              onChange={(choice) => change(kind, { choice: choice as PeriodInput['choice'] })}
            />
            {form.draft[kind].choice === 'days' && (
              <TextField
                label={`Days (${inSentence(label)})`}
                type="number"
                min={1}
                max={maxDays}
                value={form.draft[kind].days}
                error={form.isChecked ? form.problems[kind] : undefined}
                onChange={(days) => change(kind, { days })}
              />
            )}
          </div>
        ))}
      </Form>
    </Card>
  )
}

/** Returns the period to send. An empty object resets the period to the default. */
function periodOf({ choice, days }: PeriodInput) {
  if (choice === 'default') return {}
  if (choice === 'forever') return { period: { case: 'forever' as const, value: true } }
  return { period: { case: 'days' as const, value: Number(days) } }
}
