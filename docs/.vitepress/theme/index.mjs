import DefaultTheme from 'vitepress/theme-without-fonts';
import { withBase } from 'vitepress';
import { defineComponent, h, onMounted } from 'vue';
import './style.css';

/** VitePress 1.6 calls its search a button and puts fields into it, and results options with links in them: what screen readers are told is put right. */
function tellRightly(search) {
  for (const name of ['aria-expanded', 'aria-haspopup', 'aria-owns']) search.removeAttribute(name);
  search.setAttribute('role', 'dialog');
  for (const key of search.querySelectorAll('kbd[aria-label]')) key.setAttribute('role', 'img');
  for (const item of search.querySelectorAll('li[id], li[aria-selected]')) {
    const link = item.querySelector('a');
    // The link is the option; arrow keys and Enter go there.
    for (const name of ['id', 'aria-selected'])
      if (item.hasAttribute(name)) {
        link.setAttribute(name, item.getAttribute(name));
        item.removeAttribute(name);
      }
    item.setAttribute('role', 'none');
    link.setAttribute('role', 'option');
    link.removeAttribute('aria-label');
    link.tabIndex = -1;
  }
}

export default {
  extends: DefaultTheme,
  Layout: defineComponent({
    setup() {
      // Elements change what is in them: not before Vue has taken over what the server wrote.
      onMounted(async () => {
        (await import('./live_code.mjs')).defineLiveCode(withBase('/run.html'));
        // Relative to the first page; the next one may be in another folder.
        const icon = document.querySelector('link[rel=icon]');
        icon.href = String(icon.href);
        document.documentElement.dataset.ready = '';
        new MutationObserver(() => {
          const search = document.querySelector('.VPLocalSearchBox');
          if (search) tellRightly(search);
        }).observe(document.body, { childList: true, subtree: true, attributeFilter: ['aria-selected'] });
      });
      return () => h(DefaultTheme.Layout);
    },
  }),
};
