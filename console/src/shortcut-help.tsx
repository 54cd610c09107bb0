import { areas } from './areas.ts'
import { useConsole } from './console-context.ts'
import { Dialog } from './ui/dialog.tsx'
import { Toggle } from './ui/form.tsx'

const groups: { title: string; keys: [string[], string][] }[] = [
  {
    title: 'Everywhere',
    keys: [
      [['?'], 'Keyboard shortcuts'],
      ...areas.map(({ key, name }): [string[], string] => [key.split(' '), name]),
      [['j'], 'Next row'],
      [['k'], 'Previous row'],
    ],
  },
  {
    title: 'Inbox',
    keys: [
      [['j'], 'Next conversation'],
      [['k'], 'Previous conversation'],
      [['Enter'], 'Open'],
      [['n'], 'Open the one that waits longest'],
      [['/'], 'Search'],
    ],
  },
  {
    title: 'Conversation',
    keys: [
      [['r'], 'Reply'],
      [['Enter'], 'Send'],
      [['Ctrl', 'Enter'], 'Send and close'],
      [['Shift', 'Enter'], 'New line'],
      [['Esc'], 'Leave the reply, back to the list'],
      [['m'], 'Note or reply'],
      [['c'], 'Close or reopen'],
      [['a'], 'Assign to me or unassign'],
      [['i'], 'Visitor details'],
    ],
  },
]

export function ShortcutHelp({ onClose }: { onClose: () => void }) {
  const { shortcuts } = useConsole()
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose} wide>
      <div class="stack dialog-body">
        <div class="shortcut-groups">
          {groups.map(({ title, keys }) => (
            <section key={title}>
              <h3>{title}</h3>
              <dl class="shortcuts">
                {keys.map(([names, what]) => (
                  <div key={what}>
                    <dt>
                      {names.map((name) => (
                        <kbd key={name}>{name}</kbd>
                      ))}
                    </dt>
                    <dd>{what}</dd>
                  </div>
                ))}
              </dl>
            </section>
          ))}
        </div>
        <Toggle
          label="Single-key shortcuts"
          hint="Turn off if you use voice control or press keys by accident."
          checked={shortcuts.enabled.value}
          onChange={(on) => {
            shortcuts.enabled.value = on
          }}
        />
      </div>
    </Dialog>
  )
}
