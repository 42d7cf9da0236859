import DefaultTheme from 'vitepress/theme-without-fonts';
import { withBase } from 'vitepress';
import { defineComponent, h, onMounted } from 'vue';
import './style.css';

/**
 * Corrects the roles of VitePress 1.6's search for screen readers: it labels the search as a button although it
 * contains fields, and nests links in options.
 */
function tellRightly(search) {
  for (const name of ['aria-expanded', 'aria-haspopup', 'aria-owns']) search.removeAttribute(name);
  search.setAttribute('role', 'dialog');
  for (const key of search.querySelectorAll('kbd[aria-label]')) key.setAttribute('role', 'img');
  for (const item of search.querySelectorAll('li[id], li[aria-selected]')) {
    const link = item.querySelector('a');
    // The link becomes the option; arrow keys and Enter follow it.
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
      // Custom elements change their content, so they wait until Vue has hydrated the page.
      onMounted(async () => {
        (await import('./live_code.mjs')).defineLiveCode(withBase('/run.html'));
        // The address is relative to the first page; the next page may be in another folder.
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
