drawGraph();
drawMemory();
drawLayers();
drawFlash();
drawQuantisation();
drawComparison();
cards();
heading();
document.body.dataset.ready = "yes";
