import { element } from './elements.js'
import { troubles } from './network-trouble.js'

/**
 * The switch for network trouble.
 *
 * @param {ReturnType<typeof import('./network-trouble.js').createNetworkTrouble>} trouble
 */
export function networkPanel(trouble) {
  const choices = Object.entries(troubles).map(([mode, { name, does, watch }]) => {
    const input = element('input', { type: 'radio', name: 'trouble', value: mode, id: `trouble-${mode}` })
    input.addEventListener('change', () => trouble.choose(/** @type {keyof typeof troubles} */ (mode)))
    const what = element('span', { class: 'what' }, element('strong', {}, name), element('span', {}, does))
    if (watch) what.append(element('span', { class: 'watch' }, watch))
    return { input, row: element('label', { class: 'choice' }, input, what) }
  })
  const show = () => {
    for (const { input } of choices) input.checked = input.value === trouble.mode()
  }
  trouble.subscribe(show)
  show()
  return element(
    'fieldset',
    { class: 'trouble' },
    element('legend', {}, 'What should go wrong between this tab and the gateway?'),
    ...choices.map(({ row }) => row),
    element(
      'p',
      { class: 'note' },
      'The page wraps its own fetch for this, and the widget knows nothing of it. It holds for this tab, reloads included, until you switch it off.',
    ),
  )
}
