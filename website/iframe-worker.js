// Browsers start no worker from a page that was opened as a file. There, `Worker` runs its script in a hidden frame
// instead, so that the search works without a server. Over HTTP nothing is changed.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.title = "search";
      this.frame.srcdoc = "<!doctype html>";
      this.frame.addEventListener("load", () => this.start(url), { once: true });
      const add = () => document.body.append(this.frame);
      if (document.body) add();
      else document.addEventListener("DOMContentLoaded", add, { once: true });
    }

    // Gives the frame what a worker's script expects, then runs the script in it.
    start(url) {
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = async (...scripts) => {
        for (const script of scripts) await this.load(script);
      };
      this.load(url).then(() => {
        this.inside = inside;
        for (const data of this.waiting.splice(0)) this.postMessage(data);
      });
    }

    load(url) {
      return new Promise((resolve, reject) => {
        const script = this.frame.contentDocument.createElement("script");
        script.src = new URL(url, location.href);
        script.addEventListener("load", resolve);
        script.addEventListener("error", reject);
        this.frame.contentDocument.head.append(script);
      });
    }

    postMessage(data) {
      if (this.inside) this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data }));
      else this.waiting.push(data);
    }

    terminate() {
      this.frame.remove();
    }
  };
}
