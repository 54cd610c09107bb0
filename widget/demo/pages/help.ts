import { html } from './html.ts'
import type { Page } from './layout.ts'

const answers: [question: string, answer: string][] = [
  [
    'Where do you deliver?',
    'To every country of Europe, in wooden crates that we take back. Delivery is free from € 120; below that it is € 9.',
  ],
  [
    'How long does a lamp take?',
    'Between five days and two weeks: each page says it. We write to you when yours is signed.',
  ],
  ['Can I send it back?', 'Within 60 days, at our cost, for whatever reason. The crate doubles as the return parcel.'],
  [
    'Which bulbs do you use?',
    'Warm white ones (2,700 K) that come with the lamp. Every bulb can be changed without a tool.',
  ],
  [
    'My lamp broke. What now?',
    'Tell us its number, which stands under the foot. We have parts for every lamp that we ever made.',
  ],
]

export function helpPage(): Page {
  return {
    title: 'Help',
    main: html`
      <h1>Help</h1>
      <p class="lead">The questions we hear most. For all others there is a person in the chat.</p>
      <div class="answers">${answers.map(([question, answer]) => html`<details><summary>${question}</summary><p>${answer}</p></details>`)}</div>
      <p class="way"><button class="button" type="button" data-ask="">Open the chat</button></p>`,
  }
}

export function missingPage(): Page {
  return {
    title: 'Not here',
    status: 404,
    main: html`<h1>There is no light on here.</h1><p class="lead">This page does not exist, or no longer.</p><p><a class="button" href="/">Back to the shop</a></p>`,
  }
}
